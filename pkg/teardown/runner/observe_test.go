package runner

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// The kind may be gone with the object: its watch shows nothing more (#57).
func TestAbsenceThatWasReadCounts(t *testing.T) {
	object := deletedAlive(true)
	object.Spec.ConfirmedAt = new(metav1.NewTime(time.Now().Add(-time.Minute)))
	r := newTestRunner(t, nil, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: clusterID}})
	r.current, r.synced = object, true
	s := newSession(r, leads(true), object, time.Now())
	s.freeze.parts[0].listed, s.freeze.parts[1].listed = true, true
	s.record.planned = true
	if err := s.confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
	state, err := s.observe(t.Context(), view{listed: true, work: teardown.Ready})
	if err != nil || state.Alive != teardown.Absent || teardown.Decide(state).Action != teardown.End {
		t.Errorf("Alive is %s, %v: %+v", state.Alive, err, teardown.Decide(state))
	}
	if current, _, _ := r.view(); current != nil {
		t.Error("the next session begins with an Alive that is gone")
	}
}
