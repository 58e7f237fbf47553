package garbagecollector

import (
	"context"
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
		c.outdated = true
		c.mu.Unlock()
		return fmt.Errorf("discover kinds: %w", err)
	}
	if partial {
		c.metrics.syncErrors.Inc()
		klog.FromContext(ctx).Info("Some groups cannot be discovered; their kinds are kept", "groups", fmt.Sprint(failed))
	}
	absent := c.apply(ctx, c.kindsOf(groups, lists), failed)
	for _, kind := range absent {
		c.dropIfGone(ctx, kind)
	}
	return nil
}

// served are the kinds that discovery found.
type served struct {
	kinds map[schema.GroupKind]*graph.Kind
	// versions are all versions of all resources.
	versions map[schema.GroupVersionResource]bool
}

// kindsOf returns the served kinds, each in the preferred version that can be collected.
func (c *Collector) kindsOf(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) served {
	found := served{map[schema.GroupKind]*graph.Kind{}, map[schema.GroupVersionResource]bool{}}
	byVersion := map[string]*metav1.APIResourceList{}
	for _, list := range lists {
		byVersion[list.GroupVersion] = list
	}
	for _, group := range groups {
		for _, version := range append([]metav1.GroupVersionForDiscovery{group.PreferredVersion}, group.Versions...) {
			if list := byVersion[version.GroupVersion]; list != nil {
				c.addVersion(found, schema.GroupVersion{Group: group.Name, Version: version.Version}, list.APIResources)
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

// apply serves the found kinds, and returns those that are served no longer.
func (c *Collector) apply(ctx context.Context, found served, failed map[schema.GroupVersion]error) []*graph.Kind {
	var absent []*graph.Kind
	c.change(func(g *graph.Graph) {
		for _, kind := range found.kinds {
			c.serve(ctx, kind, found.versions)
		}
		known := g.Kinds()
		for _, m := range c.monitors {
			known = append(known, m.kind)
		}
		for _, kind := range known {
			if _, kept := failed[kind.GroupVersion()]; kept || found.kinds[kind.GroupKind()] != nil {
				continue
			}
			g.Withdraw(kind.GroupKind())
			if c.monitors[kind.GroupKind()] != nil && !slices.Contains(absent, kind) {
				absent = append(absent, kind)
			}
		}
		c.discovered = true
	})
	return absent
}

// serve serves one kind, under the version in use while that is served. The caller holds the
// lock.
func (c *Collector) serve(ctx context.Context, kind *graph.Kind, versions map[schema.GroupVersionResource]bool) {
	m, current := c.monitors[kind.GroupKind()], c.graph.Kind(kind.GroupKind())
	switch {
	case m != nil && versions[m.kind.GroupVersionResource()]:
		if current == nil {
			c.graph.Serve(m.kind)
		}
	case m != nil:
		m.stop()
		c.graph.Replace(m.kind, kind)
		c.startMonitor(ctx, kind)
	case kind.Collected:
		c.graph.Serve(kind)
		c.startMonitor(ctx, kind)
	case current == nil || !versions[current.GroupVersionResource()]:
		c.graph.Serve(kind)
	}
}
