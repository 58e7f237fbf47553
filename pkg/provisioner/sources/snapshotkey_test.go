package sources_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// The API server accepts every name of a data source. No snapshot has a slash in its name.
func TestSourceThatCannotExistIsNotRetried(t *testing.T) {
	w := newWorld(t, 0)
	claim := from("a/b", v1.ClaimPending)
	if err := w.Reconcile(t.Context(), controller.Key(claim)[:3]+claim.Spec.DataSource.Name); err != nil {
		t.Errorf("the key stays in the queue, and is retried, until the process ends: %v", err)
	}
}
