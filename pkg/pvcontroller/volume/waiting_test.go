package volume

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/controllertest"
)

func TestClaimExistsNamesClaim(t *testing.T) {
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec:       v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Namespace: "shop", Name: "data", UID: "u"}},
	}
	claim := func(uid types.UID, deleted bool, finalizers ...string) *v1.PersistentVolumeClaim {
		found := &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: uid, Finalizers: finalizers},
			Spec:       v1.PersistentVolumeClaimSpec{VolumeName: "pv"},
		}
		if deleted {
			now := metav1.Now()
			found.DeletionTimestamp = &now
		}
		return found
	}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec: v1.PodSpec{NodeName: "node", Volumes: []v1.Volume{{
			Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}},
		}}}}
	const protected, foreign = string(finalizer.ClaimProtection), "example.com/backup"
	for name, tc := range map[string]struct {
		claim *v1.PersistentVolumeClaim
		pods  []*v1.Pod
		next  string
	}{
		"claim exists":                       {claim("u", false, protected), nil, "once the claim is no longer needed: kubectl delete pvc data -n shop"},
		"claim is deleted, a pod uses it":    {claim("u", true, protected), []*v1.Pod{pod}, "kubectl exeunt why pvc/data -n shop"},
		"claim is deleted, other finalizer":  {claim("u", true, protected, foreign), nil, "kubectl exeunt why pvc/data -n shop"},
		"claim is deleted, only queued here": {claim("u", true, protected), nil, ""},
		"claim is gone":                      {nil, nil, ""},
		"another claim has the name":         {claim("other", false, protected), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, waits := claimExists(volume, tc.claim, tc.pods)
			if waits != (tc.next != "") || waits && got.Next != tc.next {
				t.Errorf("claimExists() = %+v, %v, want next %q", got, waits, tc.next)
			}
		})
	}
}

// The provisioner was replaced by one that does not know the annotation: the volume would stay without a word.
func TestVolumeThatAwaitsItsProvisionerHasEvent(t *testing.T) {
	s := newFixture(t, terminating(pending))
	events := controllertest.EventsAfter(t, func(t *testing.T, tracker *waiting.Tracker) {
		s.Waiting = tracker
		s.must(s.Reconcile(t.Context(), "v"))
		s.updateCaches()
		s.must(s.Protect(t.Context(), "v"))
	})
	if got := strings.Join(events, "; "); !strings.HasPrefix(got, "Normal DeletionWaiting TooLateToProtect: ") ||
		!strings.Contains(got, "example.com") {
		t.Errorf("events %q", got)
	}
}
