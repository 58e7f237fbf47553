package situations

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// changedSchemas are specs of objects, and schemas that came later, which most of them violate.
var changedSchemas = map[string]struct{ spec, schema string }{
	"RootRequired": {"{a: 1}", "{type: object, required: [other], properties: {other: {type: object}}}"},
	"DeepRequired": {"{a: 1}", "{type: object, properties: {spec: {type: object, required: [b], properties: {b: {type: string}, a: {type: integer}}}}}"},
	"RootRule": {"{a: 1}",
		"{type: object, properties: {spec: {type: object, properties: {a: {type: integer}}}}, x-kubernetes-validations: [{rule: self.spec.a > 3}]}"},
	"DeepRule": {"{a: 1}",
		"{type: object, properties: {spec: {type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self.a > 3}]}}}"},
	"DeepType": {"{a: 1}", "{type: object, properties: {spec: {type: object, properties: {a: {type: string}}}}}"},
	"Growing": {"{a: 1}",
		"{type: object, properties: {spec: {type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self.a > oldSelf.a}]}}}"},
	"Immutable": {"{a: 1}",
		"{type: object, properties: {spec: {type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self == oldSelf}]}}}"},
	"DeepOneOf": {"{a: 1}",
		"{type: object, properties: {spec: {type: object, properties: {a: {type: integer}, b: {type: string}}, oneOf: [{required: [b]}]}}}"},
	"Duplicates": {"{l: [{k: a}, {k: a}]}",
		"{type: object, properties: {spec: {type: object, properties: {l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}}}}}}}}"},
	"RuleAndType": {"{a: text}",
		"{type: object, properties: {spec: {type: object, properties: {a: {type: integer}}}}, x-kubernetes-validations: [{rule: self.spec.a > 3}]}"},
	"AtomicList": {"{l: [a]}", "{type: object, properties: {spec: {type: object, properties: {l: {type: array, items: {type: string, enum: [b]}}}}}}"},
	"Pruned":     {"{a: 1}", "{type: object, properties: {spec: {type: object, properties: {b: {type: string}}}}}"},
	"Defaulted": {"{a: 1}",
		"{type: object, required: [other], properties: {spec: {type: object, properties: {a: {type: integer}}}, other: {type: string, default: text}}}"},
	"MetadataNames": {"{a: 1}", "{type: object, properties: {metadata: {type: object, properties: {name: {type: string, maxLength: 2}}}}}"},
	"Valid":         {"{a: 1}", "{type: object, properties: {spec: {type: object, properties: {a: {type: integer}}}}}"},
}

// TestInvalidIsWhatServerRefuses compares what why reads from the schema with a dry run on
// the API server.
func TestInvalidIsWhatServerRefuses(t *testing.T) {
	r := &place{Session: harness.Join(t, harness.Setup{NoPrograms: true}, harness.Within(2*harness.Timeout))}
	refused := 0
	for kind, c := range changedSchemas {
		resource := r.createCRD(admissionGroup, kind)
		object := r.createCustom(resource, kind, "object", strangerFinalizer)
		var spec, content map[string]any
		r.Must(yaml.Unmarshal([]byte(c.spec), &spec), "parse spec")
		r.Must(yaml.Unmarshal([]byte(c.schema), &content), "parse schema")
		object.Object["spec"] = spec
		_, err := r.dynamic().Resource(resource).Namespace(r.Namespace).Update(r.Ctx, object, metav1.UpdateOptions{})
		r.Must(err, "set spec")
		args := r.deleteCustom(resource, "object")
		r.setNewSchema(resource, kind, content)
		err = r.dryRun(resource, "object")
		if err != nil {
			refused++
		}
		report := r.why(args...)
		if found := hasReason(report.Blockers, blocker.ObjectInvalid); found != (err != nil) {
			t.Errorf("%s: the dry run says %v, why says %v", kind, err, report.Blockers)
		}
	}
	if refused == 0 || refused == len(changedSchemas) {
		t.Errorf("the API server refuses %d of %d objects", refused, len(changedSchemas))
	}
}

func hasReason(blockers []blocker.Blocker, reason blocker.Reason) bool {
	for root := range blocker.Roots(blockers) {
		if root.Reason == reason {
			return true
		}
	}
	return false
}

// setNewSchema changes the schema and waits until it holds: a value of the field "marker" is
// refused then.
func (r *place) setNewSchema(resource schema.GroupVersionResource, kind string, content map[string]any) {
	r.T.Helper()
	r.Must(unstructured.SetNestedField(content, map[string]any{"type": "string", "enum": []any{"new"}}, "properties",
		"marker"), "add marker")
	r.setSchema(resource, content)
	marked := &unstructured.Unstructured{Object: map[string]any{"marker": "old"}}
	marked.SetGroupVersionKind(resource.GroupVersion().WithKind(kind))
	marked.SetName("marked")
	r.Until("the schema of "+kind+" holds", func() bool {
		_, err := r.dynamic().Resource(resource).Namespace(r.Namespace).
			Create(r.Ctx, marked, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
}
