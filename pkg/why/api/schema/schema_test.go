package schema

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	basecompatibility "k8s.io/component-base/compatibility"
	"sigs.k8s.io/yaml"
)

const definitionHead = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.example}
spec:
  group: test.example
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: `

const widget = `
apiVersion: test.example/v1
kind: Widget
metadata: {name: w, namespace: n, uid: "1", finalizers: [test.example/f]}
spec: {a: 1}
`

func parseYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return object
}

// setProgramVersion has the effect of the linker flags of our programs, which say v0.1.
func setProgramVersion(t *testing.T) {
	t.Helper()
	effective := compatibility.DefaultComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent)
	effective.(basecompatibility.MutableEffectiveVersion).SetEmulationVersion(version.MajorMinor(0, 1))
	if err := utilfeature.DefaultMutableFeatureGate.SetEmulationVersion(version.MajorMinor(0, 1)); err != nil {
		t.Fatal(err)
	}
}

func TestUnchangedFieldMayStayInvalid(t *testing.T) {
	setProgramVersion(t)
	for name, c := range map[string]struct {
		schema  string
		refused bool
	}{
		"required below the root": {"{type: object, properties: {spec: {type: object, required: [b], properties: {a: {type: integer}, b: {type: string}}}}}", false},
		"type below the root":     {"{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}", false},
		"required at the root":    {"{type: object, required: [b], properties: {b: {type: string}}}", true},
		"rule of the root":        {"{type: object, properties: {spec: {type: object, properties: {a: {type: integer}}}}, x-kubernetes-validations: [{rule: self.spec.a > 3}]}", true},
		"rule below the root":     {"{type: object, properties: {spec: {type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self.a > 3}]}}}", false},
	} {
		errs, err := Refusals(t.Context(), parseYAML(t, definitionHead+c.schema), parseYAML(t, widget), "test.example/f")
		if err != nil || (len(errs) > 0) != c.refused {
			t.Errorf("%s: refusals %v, error %v, want refused %v", name, errs, err, c.refused)
		}
	}
}
