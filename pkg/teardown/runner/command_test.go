package runner

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	k8stesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// A command that has read Alive goes on after an abort (#71), or beside another command.
func TestPermissionDoesNotUndoAnAbort(t *testing.T) {
	of := func(uid types.UID, protected bool, generation int64) *alive.Alive {
		object := deletedAlive(false)
		object.UID, object.Generation, object.Spec.Protected = uid, generation, &protected
		return object
	}
	for name, tc := range map[string]struct {
		before, now *alive.Alive
		permitted   bool
	}{
		"aborted":                         {of("old", false, 2), of("old", true, 3), false},
		"permitted and aborted":           {of("old", true, 1), of("old", true, 3), false},
		"replaced":                        {of("old", true, 1), of("other", true, 1), false},
		"permitted by another":            {of("old", true, 1), of("old", false, 2), true},
		"permitted before and by another": {of("old", false, 2), of("old", false, 3), true},
		"another status":                  {of("old", true, 1), of("old", true, 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRunner(t, tc.now)
			first := true
			refuse := func(k8stesting.Action) (bool, runtime.Object, error) {
				stale := first
				first = false
				return stale, nil, apierrors.NewConflict(schema.GroupResource{Resource: "alives"}, alive.Name, errors.New("stale"))
			}
			r.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("patch", "alives", refuse)
			armed, err := r.permit(t.Context(), tc.before, Word{})
			if (err == nil) != tc.permitted || tc.permitted && armed.IsProtected() {
				t.Errorf("Alive is %+v, %v, want permitted %t", armed, err, tc.permitted)
			}
			live, err := r.readAlive(t.Context())
			if err != nil || !tc.permitted && !live.IsProtected() {
				t.Errorf("the abort is undone: %+v, %v", live, err)
			}
		})
	}
}

// An earlier teardown was complete; the last one lost its Alive (#57).
func TestEarlierRecordIsNoSuccess(t *testing.T) {
	of := func(name, uid, phase string) *v1.ConfigMap {
		return &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name,
			Labels: map[string]string{recordLabel: "teardown"}, Annotations: map[string]string{ofAlive: uid, inPhase: phase}},
			Data: map[string]string{documentKey: "{}"}}
	}
	for name, tc := range map[string]struct {
		plan     *v1.ConfigMap
		complete bool
	}{
		"plan of the same":    {of(planName+"0", "first", ""), true},
		"plan of a later one": {of(planName+"0", "second", ""), false},
		"other parts":         {of(planName+"1", "first", ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRunner(t, nil, of(reportName, "first", string(teardown.Complete)), tc.plan)
			outcome, err := r.lastOutcome(t.Context())
			if complete := err == nil && outcome.Phase == teardown.Complete; complete != tc.complete {
				t.Errorf("the outcome is %+v, %v", outcome, err)
			}
			report, err := r.Report(t.Context())
			if err != nil || (len(report.Incomplete) == 0) != tc.complete {
				t.Errorf("the report lacks %q, %v", report.Incomplete, err)
			}
		})
	}
}
