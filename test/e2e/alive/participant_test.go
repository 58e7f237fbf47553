package alive

import (
	"errors"
	"slices"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/alive"
)

func TestParticipantRegistersAndLeaves(t *testing.T) {
	r := startGuarded(t)
	client := r.dynamic(participant)
	one := alive.Participant{Finalizer: "p.example.com/teardown", Namespace: "p", Text: "buckets"}
	r.in(absent)
	if err := alive.Register(r.ctx, client, one); !errors.Is(err, alive.ErrAbsent) {
		t.Errorf("without Alive: %v", err)
	}
	r.in(protected)
	for range 2 {
		r.must(alive.Register(r.ctx, client, one), "register")
	}
	registered := r.get()
	if got := alive.ParticipantsOf(registered); !slices.Contains(got, one) {
		t.Errorf("participants %+v", got)
	}
	r.must(alive.Register(r.ctx, client, one), "register")
	if got := r.get(); got.ResourceVersion != registered.ResourceVersion {
		t.Error("a registration that changes nothing writes")
	}
	for range 2 {
		r.must(alive.Done(r.ctx, client, one.Finalizer), "leave")
	}
	if got := alive.ParticipantsOf(r.get()); slices.Contains(got, one) {
		t.Errorf("participants %+v", got)
	}
	r.in(deleting)
	if err := alive.Register(r.ctx, client, one); !errors.Is(err, alive.ErrDeleting) {
		t.Errorf("while Alive is being deleted: %v", err)
	}
	r.must(alive.Done(r.ctx, client, others), "leave")
	if got := r.get().Finalizers; !slices.Equal(got, []string{alive.Finalizer}) {
		t.Errorf("finalizers %v", got)
	}
}
