package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	// discoveryPeriod is the time between two discoveries without a changed definition.
	discoveryPeriod = 30 * time.Second
	// discoveryDelay collects the changes of several definitions.
	discoveryDelay = 100 * time.Millisecond
	// discoveryRetry is the time until a failed discovery is repeated.
	discoveryRetry = time.Second
)

// discoverRepeatedly discovers the kinds until the context ends.
func (c *Collector) discoverRepeatedly(ctx context.Context) {
	for ctx.Err() == nil {
		period := discoveryPeriod
		if err := c.discover(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Discovery failed, and is repeated")
			period = discoveryRetry
		}
		select {
		case <-ctx.Done():
		case <-c.Clock.After(period):
		case <-c.rediscover:
			select {
			case <-ctx.Done():
			case <-c.Clock.After(discoveryDelay):
			}
		}
	}
}

// discover reads which kinds are served, and starts and stops monitors.
func (c *Collector) discover(ctx context.Context) error {
	c.discovering.Lock()
	defer c.discovering.Unlock()
	c.mu.Lock()
	c.outdated = false
	c.mu.Unlock()
	groups, lists, err := c.Discovery.ServerGroupsAndResources()
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial || len(lists) == 0 {
		c.metrics.syncErrors.Inc()
		c.mu.Lock()
		c.outdated, c.withdrawn = true, nil
		c.mu.Unlock()
		return fmt.Errorf("discover kinds: %w", err)
	}
	if partial {
		c.metrics.syncErrors.Inc()
		klog.FromContext(ctx).Info("Some groups cannot be discovered; their kinds are kept", "groups", fmt.Sprint(failed))
	}
	found := c.kindsOf(groups, lists)
	absent, rescoped := c.apply(found, failed)
	for _, kind := range absent {
		c.dropIfGone(ctx, kind)
	}
	var errs []error
	for _, kind := range rescoped {
		defined, err := c.serveDefined(ctx, kind.GroupResource().String())
		if !defined && err == nil { // an aggregated API server serves it, and discovery alone says how
			c.change(func(*graph.Graph) { c.serve(kind, found.versions) })
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		c.mu.Lock()
		c.outdated = true // a barrier must not pass with the former scope
		c.mu.Unlock()
		return err
	}
	return nil
}

// served are the kinds that discovery found.
type served struct {
	kinds map[schema.GroupKind]*graph.Kind
	// versions are all versions of all resources.
	versions map[schema.GroupVersionResource]bool
	// listed are the versions of groups whose resources are known.
	listed map[schema.GroupVersion]bool
}

// kindsOf returns the served kinds, each in the preferred version that can be collected.
func (c *Collector) kindsOf(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) served {
	found := served{map[schema.GroupKind]*graph.Kind{}, map[schema.GroupVersionResource]bool{}, map[schema.GroupVersion]bool{}}
	byVersion := map[string]*metav1.APIResourceList{}
	for _, list := range lists {
		byVersion[list.GroupVersion] = list
	}
	for _, group := range groups {
		for _, version := range append([]metav1.GroupVersionForDiscovery{group.PreferredVersion}, group.Versions...) {
			if list := byVersion[version.GroupVersion]; list != nil {
				gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
				found.listed[gv] = true
				c.addVersion(found, gv, list.APIResources)
			}
		}
	}
	return found
}

func (c *Collector) addVersion(found served, version schema.GroupVersion, resources []metav1.APIResource) {
	for _, r := range resources {
		if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "get") {
			continue
		}
		kind := &graph.Kind{GroupVersionKind: version.WithKind(r.Kind), Resource: r.Name, Namespaced: r.Namespaced}
		kind.Collected = c.collects(kind.GroupResource(), r.Verbs)
		found.versions[kind.GroupVersionResource()] = true
		if known := found.kinds[kind.GroupKind()]; known == nil || kind.Collected && !known.Collected {
			found.kinds[kind.GroupKind()] = kind
		}
	}
}

// collects reports whether the objects of the resource are collected.
func (c *Collector) collects(resource schema.GroupResource, verbs metav1.Verbs) bool {
	if resource.Resource == "events" && (resource.Group == "" || resource.Group == "events.k8s.io") || slices.Contains(c.Ignored, resource) {
		return false
	}
	return slices.Contains(verbs, "delete") && slices.Contains(verbs, "list") && slices.Contains(verbs, "watch")
}

// apply serves the found kinds. It returns those that are served no longer, and those whose scope
// differs: their definitions were created again.
func (c *Collector) apply(found served, failed map[schema.GroupVersion]error) (absent, rescoped []*graph.Kind) {
	groups := groupsOf(failed)
	c.change(func(g *graph.Graph) {
		known := g.Kinds()
		for _, m := range c.monitors {
			known = append(known, m.kind)
			if _, unknown := failed[m.kind.GroupVersion()]; unknown {
				found.versions[m.kind.GroupVersionResource()] = true
			}
		}
		for _, kind := range found.kinds {
			if c.isRescoped(kind) {
				rescoped = append(rescoped, kind)
				continue
			}
			c.serve(kind, found.versions)
		}
		for _, kind := range known {
			if groups[kind.Group] || found.kinds[kind.GroupKind()] != nil {
				continue
			}
			g.Withdraw(kind.GroupKind())
			if c.monitors[kind.GroupKind()] != nil && !slices.Contains(absent, kind) {
				absent = append(absent, kind)
			}
		}
		c.setWithdrawn(absent)
		c.hidden = c.hiddenOf(found.listed, failed)
		c.discovered = true
	})
	return absent, rescoped
}

// readOnlyGroups are the APIs of metrics, whose objects cannot be deleted, and have no owners.
var readOnlyGroups = []string{"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"}

// hiddenOf returns the groups with a version that cannot be discovered, never was, and of which no kind is known.
// It notes the versions that were discovered; the caller holds the lock.
func (c *Collector) hiddenOf(listed map[schema.GroupVersion]bool, failed map[schema.GroupVersion]error) (hidden []string) {
	for version := range failed {
		if c.listed[version] {
			listed[version] = true
			continue
		}
		known := slices.ContainsFunc(c.graph.Kinds(), func(kind *graph.Kind) bool { return kind.GroupVersion() == version })
		if !known && !slices.Contains(readOnlyGroups, version.Group) {
			hidden = append(hidden, "*."+version.Group)
		}
	}
	c.listed = listed
	slices.Sort(hidden)
	return slices.Compact(hidden)
}

func groupsOf(versions map[schema.GroupVersion]error) map[string]bool {
	groups := map[string]bool{}
	for version := range versions {
		groups[version.Group] = true
	}
	return groups
}

// isRescoped reports whether the kind is watched with another scope. The caller holds the lock.
func (c *Collector) isRescoped(kind *graph.Kind) bool {
	m := c.monitors[kind.GroupKind()]
	return m != nil && m.kind.Namespaced != kind.Namespaced
}

// serve serves one kind, under the version in use while that is served. The caller holds the
// lock.
func (c *Collector) serve(kind *graph.Kind, versions map[schema.GroupVersionResource]bool) {
	m, current := c.monitors[kind.GroupKind()], c.graph.Kind(kind.GroupKind())
	switch {
	case c.isRescoped(kind): // the objects of the former definition are gone
		m.stop()
		c.graph.Drop(m.kind)
		c.graph.Serve(kind)
		c.replaceMonitor(m, kind)
	case m != nil && versions[m.kind.GroupVersionResource()]:
		if current == nil {
			c.graph.Serve(m.kind)
		}
	case m != nil:
		m.stop()
		c.graph.Replace(m.kind, kind)
		c.replaceMonitor(m, kind)
	case kind.Collected:
		c.graph.Serve(kind)
		c.startMonitor(kind)
	case current == nil || !versions[current.GroupVersionResource()] || current.Namespaced != kind.Namespaced:
		c.graph.Serve(kind)
	}
}

// replaceMonitor watches the kind instead of the former one, and has the barrier that runs do so. The
// caller holds the lock.
func (c *Collector) replaceMonitor(former *monitor, kind *graph.Kind) {
	c.startMonitor(kind)
	if c.run != nil {
		c.run.Replace(former.kind, kind)
		c.awaited.wake()
	}
}
