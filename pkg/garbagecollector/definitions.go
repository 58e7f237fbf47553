package garbagecollector

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// definitionReads read what defines kinds, live. They have no mutex.
type definitionReads struct {
	client rest.Interface
}

// read reads a definition.
func (d *definitionReads) read(
	ctx context.Context, name string,
) (*apiextensionsv1.CustomResourceDefinition, error) {
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

// kindOf returns the kind of the definition, nil if no objects of the kind can exist yet.
func kindOf(definition *apiextensionsv1.CustomResourceDefinition) *graph.Kind {
	established := func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}
	served := func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served }
	at := slices.IndexFunc(definition.Spec.Versions, served)
	if at < 0 || !slices.ContainsFunc(definition.Status.Conditions, established) {
		return nil
	}
	spec := definition.Spec
	return &graph.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: spec.Group, Version: spec.Versions[at].Name, Kind: spec.Names.Kind},
		Resource:         spec.Names.Plural, Namespaced: spec.Scope == apiextensionsv1.NamespaceScoped, Collected: true,
	}
}

// readWhole reads a cluster-scoped object as JSON. Its error is that of the API server, which
// names an absent object; Raw alone returns an error without names.
func (d *definitionReads) readWhole(ctx context.Context, kind *graph.Kind, name string) ([]byte, error) {
	request := d.client.Get().AbsPath("/apis", kind.Group, kind.Version, kind.Resource, name)
	result := request.SetHeader("Accept", "application/json").Do(ctx)
	body, err := result.Raw()
	if err != nil {
		err = result.Error()
	}
	return body, err
}
