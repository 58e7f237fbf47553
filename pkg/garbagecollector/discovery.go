package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
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

// kindDiscovery finds the kinds to collect, and has them watched.
type kindDiscovery struct {
	*sharedGraph
	watches *watches
	client  discovery.DiscoveryInterface
	// rest reads the definitions of kinds, lists asks whether a path is served.
	rest     rest.Interface
	lists    metadata.Interface
	throttle *Throttle
	// ignored are the resources that are not collected, beside events.
	ignored []schema.GroupResource
	metrics *counters

	// running is held during discovery, and taken before the mutex of the graph.
	running sync.Mutex

	// The mutex of the graph guards the fields below.

	// discovered: discovery has succeeded.
	discovered bool
	// withdrawn is, for watched kinds that discovery lacks, since when it does without a failure.
	withdrawn map[schema.GroupKind]time.Time
	// listed are the versions of groups whose resources a discovery has listed since the versions exist.
	listed map[schema.GroupVersion]bool
	// hidden are the groups with a version that cannot be discovered, never was, and of which no kind is known.
	hidden []string
}

func newKindDiscovery(config *Config, known *sharedGraph, watches *watches, metrics *counters) *kindDiscovery {
	return &kindDiscovery{
		sharedGraph: known, watches: watches, client: config.Discovery, rest: config.REST, lists: config.Barriers,
		throttle: config.Throttle, ignored: config.Ignored, metrics: metrics,
	}
}

// discoverRepeatedly discovers the kinds until the context ends.
func (d *kindDiscovery) discoverRepeatedly(ctx context.Context) {
	for ctx.Err() == nil {
		period := discoveryPeriod
		if err := d.discover(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Discovery failed, and is repeated")
			period = discoveryRetry
		}
		select {
		case <-ctx.Done():
		case <-d.clock.After(period):
		case <-d.watches.rediscover:
			select {
			case <-ctx.Done():
			case <-d.clock.After(discoveryDelay):
			}
		}
	}
}

// discover reads which kinds are served, and starts and stops monitors.
func (d *kindDiscovery) discover(ctx context.Context) error {
	d.running.Lock()
	defer d.running.Unlock()
	d.mu.Lock()
	d.watches.outdated = false
	d.mu.Unlock()
	groups, lists, err := d.client.ServerGroupsAndResources()
	failed, partial := discovery.GroupDiscoveryFailedErrorGroups(err)
	if err != nil && !partial || len(lists) == 0 {
		d.metrics.syncErrors.Inc()
		d.mu.Lock()
		d.watches.outdated, d.withdrawn = true, nil
		d.mu.Unlock()
		return fmt.Errorf("discover kinds: %w", err)
	}
	if partial {
		d.metrics.syncErrors.Inc()
		klog.FromContext(ctx).Info("Some groups cannot be discovered; their kinds are kept", "groups", fmt.Sprint(failed))
	}
	found := d.kindsOf(groups, lists)
	absent, rescoped := d.apply(found, failed)
	for _, kind := range absent {
		d.dropIfGone(ctx, kind)
	}
	var errs []error
	for _, kind := range rescoped {
		defined, err := d.serveDefined(ctx, kind.GroupResource().String())
		if !defined && err == nil { // an aggregated API server serves it, and discovery alone says how
			d.change(func(*graph.Graph) { d.watches.serve(kind, found.versions) })
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		d.mu.Lock()
		d.watches.outdated = true // a barrier must not pass with the former scope
		d.mu.Unlock()
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
func (d *kindDiscovery) kindsOf(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) served {
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
				d.addVersion(found, gv, list.APIResources)
			}
		}
	}
	return found
}

func (d *kindDiscovery) addVersion(found served, version schema.GroupVersion, resources []metav1.APIResource) {
	for _, r := range resources {
		if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "get") {
			continue
		}
		kind := &graph.Kind{GroupVersionKind: version.WithKind(r.Kind), Resource: r.Name, Namespaced: r.Namespaced}
		kind.Collected = d.collects(kind.GroupResource(), r.Verbs)
		found.versions[kind.GroupVersionResource()] = true
		if known := found.kinds[kind.GroupKind()]; known == nil || kind.Collected && !known.Collected {
			found.kinds[kind.GroupKind()] = kind
		}
	}
}

// collects reports whether the objects of the resource are collected.
func (d *kindDiscovery) collects(resource schema.GroupResource, verbs metav1.Verbs) bool {
	if resource.Resource == "events" && (resource.Group == "" || resource.Group == "events.k8s.io") || slices.Contains(d.ignored, resource) {
		return false
	}
	return slices.Contains(verbs, "delete") && slices.Contains(verbs, "list") && slices.Contains(verbs, "watch")
}

// apply serves the found kinds. It returns those that are served no longer, and those whose scope
// differs: their definitions were created again.
func (d *kindDiscovery) apply(found served, failed map[schema.GroupVersion]error) (absent, rescoped []*graph.Kind) {
	groups := groupsOf(failed)
	d.change(func(g *graph.Graph) {
		known := g.Kinds()
		for _, m := range d.watches.monitors {
			known = append(known, m.kind)
			if _, unknown := failed[m.kind.GroupVersion()]; unknown {
				found.versions[m.kind.GroupVersionResource()] = true
			}
		}
		for _, kind := range found.kinds {
			if d.watches.isRescoped(kind) {
				rescoped = append(rescoped, kind)
				continue
			}
			d.watches.serve(kind, found.versions)
		}
		for _, kind := range known {
			if groups[kind.Group] || found.kinds[kind.GroupKind()] != nil {
				continue
			}
			g.Withdraw(kind.GroupKind())
			if d.watches.monitors[kind.GroupKind()] != nil && !slices.Contains(absent, kind) {
				absent = append(absent, kind)
			}
		}
		d.setWithdrawn(absent)
		d.hidden = d.hiddenOf(found.listed, failed)
		d.discovered = true
	})
	return absent, rescoped
}

// readOnlyGroups are the APIs of metrics, whose objects cannot be deleted, and have no owners.
var readOnlyGroups = []string{"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"}

// hiddenOf returns the groups with a version that cannot be discovered, never was, and of which no kind is known.
// It notes the versions that were discovered; the caller holds the lock.
func (d *kindDiscovery) hiddenOf(listed map[schema.GroupVersion]bool, failed map[schema.GroupVersion]error) (hidden []string) {
	for version := range failed {
		if d.listed[version] {
			listed[version] = true
			continue
		}
		known := slices.ContainsFunc(d.graph.Kinds(), func(kind *graph.Kind) bool { return kind.GroupVersion() == version })
		if !known && !slices.Contains(readOnlyGroups, version.Group) {
			hidden = append(hidden, "*."+version.Group)
		}
	}
	d.listed = listed
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

// unlisted returns an error if the kinds are not discovered, or a kind has no first list yet.
func (d *kindDiscovery) unlisted() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.discovered {
		return fmt.Errorf("the kinds are not discovered yet")
	}
	for kind, m := range d.watches.monitors {
		if !m.listed {
			return fmt.Errorf("%s is not listed yet", kind)
		}
	}
	return nil
}
