package reclaim_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestMayReclaimOnEveryState(t *testing.T) {
	for claim := storage.ClaimNone; claim <= storage.ClaimElsewhere; claim++ {
		for bits := range 4 {
			dynamic, deleting := bits&1 == 1, bits&2 == 2
			want := claim == storage.ClaimGone || claim == storage.ClaimElsewhere && dynamic || claim == storage.ClaimUnbound &&
				dynamic && deleting
			if got := reclaim.MayReclaim(claim, dynamic, deleting); got != want {
				t.Errorf("MayReclaim(%v, %v, %v) = %v, want %v", claim, dynamic, deleting, got, want)
			}
		}
	}
}

func TestStatusOf(t *testing.T) {
	for annotation, want := range map[string]reclaim.Status{
		"pending": reclaim.StatusPending, "done": reclaim.StatusDone, "": reclaim.StatusNone, "perhaps": reclaim.StatusNone,
	} {
		volume := &v1.PersistentVolume{}
		volume.Annotations = map[string]string{"exeunt.io/reclaim": annotation}
		if got := reclaim.StatusOf(volume); got != want {
			t.Errorf("StatusOf(%q) = %v, want %v", annotation, got, want)
		}
	}
	if got := reclaim.StatusOf(&v1.PersistentVolume{}); got != reclaim.StatusNone {
		t.Errorf("StatusOf without annotations = %v", got)
	}
}

func TestStatusNamesAreDistinct(t *testing.T) {
	names := map[string]bool{}
	for status := reclaim.StatusNone; status <= reclaim.StatusDone; status++ {
		names[status.String()] = true
	}
	if len(names) != 3 {
		t.Errorf("names = %v, want 3", names)
	}
}
