package garbagecollector

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

var (
	definitions = &graph.Kind{GroupVersionKind: definitionKind.WithVersion("v1"), Resource: "customresourcedefinitions"}
	services    = &graph.Kind{GroupVersionKind: serviceKind.WithVersion("v1"), Resource: "apiservices"}
)

// dropIfGone drops a kind that discovery lacks, once its definition proved to be gone.
func (c *Collector) dropIfGone(ctx context.Context, kind *graph.Kind) {
	gone, err := c.isGone(ctx, kind)
	if err != nil || !gone {
		klog.FromContext(ctx).V(2).Info("A kind is not served; its objects are kept", "resource", kind.GroupResource(), "err", err)
		return
	}
	klog.FromContext(ctx).Info("A kind is gone", "resource", kind.GroupResource())
	c.change(func(g *graph.Graph) {
		if m := c.monitors[kind.GroupKind()]; m != nil && m.kind == kind {
			m.stop()
			delete(c.monitors, kind.GroupKind())
			g.Drop(kind)
			if c.run != nil {
				c.run.Remove(kind)
				c.awaited.wake()
			}
		}
	})
}

// isGone reports whether neither a CustomResourceDefinition nor an APIService of another
// server defines the kind, or the definition of its resource has another kind by now. A kind of
// Kubernetes has no APIService for a while when an older API server starts, so it must be withdrawn. Any
// kind may be.
func (c *Collector) isGone(ctx context.Context, kind *graph.Kind) (bool, error) {
	if kind.Group == "" {
		return c.isWithdrawn(ctx, kind)
	}
	if !isOfKubernetes(kind) {
		switch definition, err := c.readDefinition(ctx, kind.GroupResource().String()); {
		case err == nil:
			return !namesKind(definition, kind.Kind), nil
		case !namesAbsent(err, definitions, kind.GroupResource().String()):
			return false, err
		}
	}
	name := kind.Version + "." + kind.Group
	body, err := c.readWhole(ctx, services, name)
	switch {
	case namesAbsent(err, services, name) && isOfKubernetes(kind):
		return c.isWithdrawn(ctx, kind)
	case namesAbsent(err, services, name):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read APIService %s: %w", name, err)
	}
	var service struct {
		Spec struct {
			Service *struct{} `json:"service"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(body, &service); err != nil {
		return false, fmt.Errorf("decode APIService %s: %w", name, err)
	}
	if service.Spec.Service == nil && !isOfKubernetes(kind) { // the group has other CustomResourceDefinitions
		return true, nil
	}
	return c.isWithdrawn(ctx, kind)
}

// readDefinition reads a definition live.
func (c *Collector) readDefinition(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	body, err := c.readWhole(ctx, definitions, name)
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err == nil {
		err = json.Unmarshal(body, definition)
	}
	if err != nil {
		return nil, fmt.Errorf("read CustomResourceDefinition %s: %w", name, err)
	}
	return definition, nil
}

// namesKind reports whether the definition has this kind. A definition that was deleted and created again may have
// another one.
func namesKind(definition *apiextensionsv1.CustomResourceDefinition, kind string) bool {
	return definition.Spec.Names.Kind == kind || definition.Status.AcceptedNames.Kind == kind
}

// refreshKinds makes the served kinds as new as the definitions in the graph. Discovery may
// lack a kind whose first objects exist already.
func (c *Collector) refreshKinds(ctx context.Context) error {
	c.discovering.Lock() // a discovery that is under way may find them
	c.mu.Lock()
	outdated := c.outdated
	c.mu.Unlock()
	c.discovering.Unlock()
	if outdated {
		if err := c.discover(ctx); err != nil {
			return err
		}
	}
	for _, name := range c.undiscovered() {
		if _, err := c.serveDefined(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// undiscovered returns the definitions whose kinds are not served.
func (c *Collector) undiscovered() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := map[string]bool{}
	for _, kind := range c.graph.Kinds() {
		known[kind.GroupResource().String()] = true
	}
	var names []string
	for name := range c.definitions {
		if !known[name] && !slices.Contains(c.Ignored, schema.ParseGroupResource(name)) {
			names = append(names, name)
		}
	}
	return names
}

// serveDefined serves the kind of a definition, if objects of the kind can exist. It returns false if there is no
// such definition.
func (c *Collector) serveDefined(ctx context.Context, name string) (defined bool, err error) {
	definition, err := c.readDefinition(ctx, name)
	if answer.IsAbsent(err, name) {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.definitions, name)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	established := slices.ContainsFunc(definition.Status.Conditions, func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
	})
	at := slices.IndexFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served })
	if !established || at < 0 {
		return true, nil
	}
	spec := definition.Spec
	kind := &graph.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: spec.Group, Version: spec.Versions[at].Name, Kind: spec.Names.Kind},
		Resource:         spec.Names.Plural, Namespaced: spec.Scope == apiextensionsv1.NamespaceScoped, Collected: true,
	}
	c.change(func(*graph.Graph) {
		c.serve(kind, map[schema.GroupVersionResource]bool{kind.GroupVersionResource(): true})
	})
	return true, nil
}
