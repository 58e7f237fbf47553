package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/answer"
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
	// definitions read what defines kinds, gone finds out which kinds are gone.
	definitions *definitionReads
	gone        *goneKinds
	// ignored are the resources that are not collected, beside events.
	ignored []schema.GroupResource
	metrics *counters

	// running is held during discovery, and taken before the mutex of the graph.
	running sync.Mutex

	// The mutex of the graph guards the fields below.

	// discovered: discovery has succeeded.
	discovered bool
	// listed are the versions of groups whose resources a discovery has listed since the versions exist.
	listed map[schema.GroupVersion]bool
	// hidden are the groups with a version that cannot be discovered, never was, and of which no kind is known.
	hidden []string
}

func newKindDiscovery(config *Config, known *sharedGraph, watches *watches, metrics *counters) *kindDiscovery {
	definitions := &definitionReads{config.REST}
	gone := &goneKinds{sharedGraph: known, definitions: definitions, lists: config.Barriers, throttle: config.Throttle}
	return &kindDiscovery{
		sharedGraph: known, watches: watches, client: config.Discovery, definitions: definitions, gone: gone,
		ignored: config.Ignored, metrics: metrics,
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
		d.watches.outdated, d.gone.withdrawn = true, nil
		d.mu.Unlock()
		return fmt.Errorf("discover kinds: %w", err)
	}
	if partial {
		d.metrics.syncErrors.Inc()
		klog.FromContext(ctx).Info("Some groups cannot be discovered; their kinds are kept", "groups", fmt.Sprint(failed))
	}
	found := kindsOf(groups, lists, d.ignored)
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
		// A barrier of the next second must read the kind in its new scope, or its objects are overlooked as dependents.
		d.watches.outdated = true
		d.mu.Unlock()
		return err
	}
	return nil
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
			// A server of the group does not answer: its kinds are unknown, not gone. If they were dropped, their objects
			// would no longer be known as dependents, and the owners of these be released before them.
			if groups[kind.Group] || found.kinds[kind.GroupKind()] != nil {
				continue
			}
			g.Withdraw(kind.GroupKind())
			if d.watches.monitors[kind.GroupKind()] != nil && !slices.Contains(absent, kind) {
				absent = append(absent, kind)
			}
		}
		d.gone.setWithdrawn(absent)
		d.hidden = d.hiddenOf(found.listed, failed)
		d.discovered = true
	})
	return absent, rescoped
}

// readOnlyGroups are the APIs of metrics, whose objects cannot be deleted, and have no owners.
var readOnlyGroups = []string{"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"}

// hiddenOf returns the groups with a version that cannot be discovered, never was, and of which no kind is known.
// It notes the versions that were discovered; the caller holds the lock.
func (d *kindDiscovery) hiddenOf(
	listed map[schema.GroupVersion]bool, failed map[schema.GroupVersion]error,
) (hidden []string) {
	for version := range failed {
		if d.listed[version] {
			listed[version] = true
			continue
		}
		isOfVersion := func(kind *graph.Kind) bool { return kind.GroupVersion() == version }
		known := slices.ContainsFunc(d.graph.Kinds(), isOfVersion)
		if !known && !slices.Contains(readOnlyGroups, version.Group) {
			hidden = append(hidden, "*."+version.Group)
		}
	}
	d.listed = listed
	slices.Sort(hidden)
	return slices.Compact(hidden)
}

// dropIfGone drops a kind that discovery lacks, once its definition proved to be gone.
func (d *kindDiscovery) dropIfGone(ctx context.Context, kind *graph.Kind) {
	gone, err := d.gone.isGone(ctx, kind)
	if err != nil || !gone {
		klog.FromContext(ctx).V(2).Info("A kind is not served; its objects are kept",
			"resource", kind.GroupResource(), "err", err)
		return
	}
	klog.FromContext(ctx).Info("A kind is gone", "resource", kind.GroupResource())
	d.watches.drop(kind)
}

// refreshKinds makes the served kinds as new as the definitions in the graph. Discovery may
// lack a kind whose first objects exist already.
func (d *kindDiscovery) refreshKinds(ctx context.Context) error {
	d.running.Lock() // a discovery that is under way may find them
	d.mu.Lock()
	outdated := d.watches.outdated
	d.mu.Unlock()
	d.running.Unlock()
	if outdated {
		if err := d.discover(ctx); err != nil {
			return err
		}
	}
	for _, name := range d.undiscovered() {
		if _, err := d.serveDefined(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// undiscovered returns the definitions whose kinds are not served.
func (d *kindDiscovery) undiscovered() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := map[string]bool{}
	for _, kind := range d.graph.Kinds() {
		known[kind.GroupResource().String()] = true
	}
	var names []string
	for name := range d.watches.definitions {
		if !known[name] && !slices.Contains(d.ignored, schema.ParseGroupResource(name)) {
			names = append(names, name)
		}
	}
	return names
}

// serveDefined serves the kind of a definition, if objects of the kind can exist. It returns false if there is no
// such definition.
func (d *kindDiscovery) serveDefined(ctx context.Context, name string) (defined bool, err error) {
	definition, err := d.definitions.read(ctx, name)
	if answer.IsAbsent(err, name) {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.watches.definitions, name)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	kind := kindOf(definition)
	if kind == nil {
		return true, nil
	}
	d.change(func(*graph.Graph) {
		d.watches.serve(kind, map[schema.GroupVersionResource]bool{kind.GroupVersionResource(): true})
	})
	return true, nil
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
