package nodeterminator

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// #62 The Lease passes to another process while the others are listed.
func TestFormerLeaderDeletesNoClaim(t *testing.T) {
	inDisrupted(t, "30m", func(w *disrupted) {
		leads := true
		w.Leading = func() bool { return leads }
		w.claims.PrependReactor("list", "nodeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			leads = false
			return false, nil, nil
		})
		if err := w.reconcile("a"); err == nil {
			w.t.Error("a former leader reports no error")
		}
		w.expectDeleted()
	})
}
