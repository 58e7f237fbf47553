package journalstore

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// An entry was added during a write that succeeds: another write follows, and nothing has failed.
func TestWriteThatSucceedsIsNoFailure(t *testing.T) {
	s := &Store{wake: make(chan struct{}, 1)}
	l := &lease{entries: map[types.UID]string{"added": "entry"}, failures: 3}
	s.recordCommit(t.Context(), l, nil)
	if l.failures != 0 || !l.due.IsZero() {
		t.Errorf("%d failures, another try at %v", l.failures, l.due)
	}
}
