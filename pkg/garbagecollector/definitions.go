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

// dropIfGone drops a kind that discovery lacks, once its definition proved to be gone.
func (d *kindDiscovery) dropIfGone(ctx context.Context, kind *graph.Kind) {
	gone, err := d.isGone(ctx, kind)
	if err != nil || !gone {
		klog.FromContext(ctx).V(2).Info("A kind is not served; its objects are kept", "resource", kind.GroupResource(), "err", err)
		return
	}
	klog.FromContext(ctx).Info("A kind is gone", "resource", kind.GroupResource())
	d.watches.drop(kind)
}

// isGone reports whether neither a CustomResourceDefinition nor an APIService of another
// server defines the kind, or the definition of its resource has another kind by now. A kind of
// Kubernetes has no APIService for a while when an older API server starts, so it must be withdrawn. Any
// kind may be.
func (d *kindDiscovery) isGone(ctx context.Context, kind *graph.Kind) (bool, error) {
	if kind.Group == "" {
		return d.isWithdrawn(ctx, kind)
	}
	if !isOfKubernetes(kind) {
		switch definition, err := d.readDefinition(ctx, kind.GroupResource().String()); {
		case err == nil:
			return !namesKind(definition, kind.Kind), nil
		case !namesAbsent(err, definitions, kind.GroupResource().String()):
			return false, err
		}
	}
	name := kind.Version + "." + kind.Group
	body, err := d.readWhole(ctx, services, name)
	switch {
	case namesAbsent(err, services, name) && isOfKubernetes(kind):
		return d.isWithdrawn(ctx, kind)
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
	return d.isWithdrawn(ctx, kind)
}

// readDefinition reads a definition live.
func (d *kindDiscovery) readDefinition(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	body, err := d.readWhole(ctx, definitions, name)
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
	definition, err := d.readDefinition(ctx, name)
	if answer.IsAbsent(err, name) {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.watches.definitions, name)
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
	d.change(func(*graph.Graph) {
		d.watches.serve(kind, map[schema.GroupVersionResource]bool{kind.GroupVersionResource(): true})
	})
	return true, nil
}

// readWhole reads a cluster-scoped object as JSON. Its error is that of the API server, which
// names an absent object; Raw alone returns an error without names.
func (d *kindDiscovery) readWhole(ctx context.Context, kind *graph.Kind, name string) ([]byte, error) {
	result := d.rest.Get().AbsPath("/apis", kind.Group, kind.Version, kind.Resource, name).SetHeader("Accept", "application/json").Do(ctx)
	body, err := result.Raw()
	if err != nil {
		err = result.Error()
	}
	return body, err
}
