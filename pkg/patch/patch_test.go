package patch_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/exeunt-io/exeunt/pkg/patch"
)

func TestAnnotateCreatesMissingMap(t *testing.T) {
	bare := &metav1.ObjectMeta{UID: "u", ResourceVersion: "3"}
	annotated := &metav1.ObjectMeta{UID: "u", ResourceVersion: "3", Annotations: map[string]string{"x": "y"}}
	annotation := map[string]string{"pv.kubernetes.io/bound~by": "yes"}
	for name, tc := range map[string]struct {
		object metav1.Object
		want   string
	}{
		"without annotations": {bare,
			`[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/resourceVersion","value":"3"},{"op":"add","path":"/metadata/annotations","value":{"pv.kubernetes.io/bound~by":"yes"}}]`},
		"with annotations": {annotated,
			`[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"add","path":"/metadata/annotations/pv.kubernetes.io~1bound~0by","value":"yes"}]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := patch.For(tc.object).Annotate(tc.object, annotation).Bytes()
			if err != nil || string(got) != tc.want {
				t.Errorf("got  %s (%v)\nwant %s", got, err, tc.want)
			}
		})
	}
}

func TestForVersionTestsUIDAndVersion(t *testing.T) {
	object := &metav1.ObjectMeta{UID: "u", ResourceVersion: "3"}
	const want = `[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/resourceVersion","value":"3"}]`
	if got, err := patch.ForVersion(object).Bytes(); err != nil || string(got) != want {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
}

func TestEffectLeavesOutTests(t *testing.T) {
	object := &metav1.ObjectMeta{UID: "u", ResourceVersion: "3"}
	const want = `[{"op":"remove","path":"/spec/claimRef"}]`
	if got, err := patch.ForVersion(object).Remove("/spec/claimRef").Effect(); err != nil || string(got) != want {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
}

func TestDeletionIsTestedIfObserved(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 4, 5, 6, 7, time.FixedZone("", 3600)))
	for want, object := range map[string]*metav1.ObjectMeta{
		`[{"op":"test","path":"/metadata/uid","value":"u"}]`: {UID: "u"},
		`[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/deletionTimestamp","value":"2026-01-02T03:05:06Z"}]`: {UID: "u", DeletionTimestamp: &at},
	} {
		if got, err := patch.For(object).TestDeletion(object).Bytes(); err != nil || string(got) != want {
			t.Errorf("got  %s (%v)\nwant %s", got, err, want)
		}
	}
}

func TestPatchOfTestsIsEmpty(t *testing.T) {
	object := &metav1.ObjectMeta{UID: "u"}
	if !patch.ForVersion(object).Empty() {
		t.Error("a patch that only tests is not empty")
	}
	if patch.For(object).Remove("/metadata/finalizers").Empty() {
		t.Error("a patch that removes is empty")
	}
}

func TestIsStale(t *testing.T) {
	resource := schema.GroupResource{Resource: "persistentvolumes"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"failed test": {apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", resource, "v", "testing value failed", 0, false), true},
		"conflict":    {apierrors.NewConflict(resource, "v", errors.New("modified")), true},
		"invalid object": {apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolume"}, "v",
			field.ErrorList{field.Forbidden(field.NewPath("spec"), "immutable")}), false},
		"no details": {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid}}, true},
		"not found":  {apierrors.NewNotFound(resource, "v"), false},
		"no error":   {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := patch.IsStale(tc.err); got != tc.want {
				t.Errorf("IsStale(%v) = %v, want %v", tc.err, got, tc.want)
			}
		})
	}
}
