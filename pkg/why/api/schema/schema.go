package schema

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	basecompatibility "k8s.io/component-base/compatibility"
	baseversion "k8s.io/component-base/version"
)

// ServedVersions returns the versions of the definition that clients can write.
func ServedVersions(definition *unstructured.Unstructured) []string {
	var names []string
	parsed, err := parse(definition)
	if err != nil {
		return nil
	}
	for _, version := range parsed.Spec.Versions {
		if version.Served {
			names = append(names, version.Name)
		}
	}
	return names
}

// Refusals returns the errors with which the API server refuses to remove the finalizer from
// the object, or an error if the schema of the object's version cannot be evaluated.
func Refusals(ctx context.Context, definition, object *unstructured.Unstructured,
	finalizer string) (field.ErrorList, error) {
	parsed, err := parse(definition)
	if err != nil {
		return nil, err
	}
	version := object.GroupVersionKind().Version
	i := slices.IndexFunc(parsed.Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 || parsed.Spec.Versions[i].Schema == nil || parsed.Spec.Versions[i].Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("find schema of %s in version %s: there is none", definition.GetName(), version)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(parsed.Spec.Versions[i].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, fmt.Errorf("convert schema of %s: %w", definition.GetName(), err)
	}
	if err := beKubernetes(); err != nil {
		return nil, err
	}
	changed := object.DeepCopy()
	changed.SetFinalizers(slices.DeleteFunc(changed.GetFinalizers(), func(name string) bool { return name == finalizer }))
	return validate(ctx, &props, changed.Object, object.Object)
}

func parse(definition *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	var parsed apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition.Object, &parsed); err != nil {
		return nil, fmt.Errorf("parse definition %s: %w", definition.GetName(), err)
	}
	return &parsed, nil
}

// validate validates an update in the order of the API server: schema, list types, rules.
func validate(ctx context.Context, props *apiextensions.JSONSchemaProps, changed,
	old map[string]any) (field.ErrorList, error) {
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	related := common.NewCorrelatedObject(changed, old, &model.Structural{Structural: structural})
	errs := validation.ValidateCustomResourceUpdate(nil, changed, old, validator, validation.WithRatcheting(related))
	if len(listtype.ValidateListSetsAndMaps(nil, structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, structural, changed)...)
	}
	if len(errs) > 0 { // refused already; rules need an object of the right types
		return errs, nil
	}
	rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	if rules == nil {
		return nil, nil
	}
	errs, _ = rules.Validate(ctx, nil, structural, changed, old, celconfig.RuntimeCELCostBudget,
		cel.WithRatcheting(related))
	return errs, nil
}

// beKubernetes makes the packages of the API server validate as Kubernetes does. They take the
// version of our program for that of Kubernetes: at v0.1 they know no ratcheting, and call
// objects invalid to which the API server takes writes.
var beKubernetes = sync.OnceValue(func() error {
	kubernetes := version.MustParse(baseversion.DefaultKubeBinaryVersion)
	effective := compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent)
	mutable, settable := effective.(basecompatibility.MutableEffectiveVersion)
	if !settable {
		return fmt.Errorf("set version of validation to %s: it cannot be set", kubernetes)
	}
	mutable.SetEmulationVersion(kubernetes)
	if err := utilfeature.DefaultMutableFeatureGate.SetEmulationVersion(kubernetes); err != nil {
		return fmt.Errorf("set version of validation to %s: %w", kubernetes, err)
	}
	return nil
})
