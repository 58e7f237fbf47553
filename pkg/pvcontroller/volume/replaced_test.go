package volume

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// replaced returns a Bound volume that lost its claimRef, and the claim that is bound to it.
func replaced() (*v1.PersistentVolume, *v1.PersistentVolumeClaim) {
	volume := releasedVolume(v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Annotations, v.Spec.ClaimRef, v.Status.Phase = nil, nil, v1.VolumeBound
		v.Finalizers = []string{"kubernetes.io/pv-protection"}
	})
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "c",
			Annotations: map[string]string{storage.AnnBindCompleted: "yes"}},
		Spec:   v1.PersistentVolumeClaimSpec{VolumeName: "v"},
		Status: v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound},
	}
	return volume, claim
}

func TestReplacedVolumeStaysBound(t *testing.T) {
	volume, claim := replaced()
	for name, tc := range map[string]struct {
		live   []runtime.Object
		cached bool // the claim is in the cache
		woken  []string
		phase  v1.PersistentVolumePhase
	}{
		"claim in the cache":      {[]runtime.Object{claim}, true, []string{"ns/claim"}, v1.VolumeBound},
		"claim not in the cache":  {[]runtime.Object{claim}, false, []string{"ns/claim"}, v1.VolumeBound},
		"claim in the cache only": {nil, true, []string{"ns/claim"}, v1.VolumeBound},
		"claim is gone":           {nil, false, nil, v1.VolumeAvailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, append(tc.live, volume)...)
			if tc.cached {
				s.must(s.Caches.Claims.GetStore().Add(claim))
			}
			var woken []string
			s.WakeClaim = func(claim string) { woken = append(woken, claim) }
			s.must(s.Reconcile(t.Context(), "v"))
			s.updateCaches()
			s.must(s.Protect(t.Context(), "v"))
			if now := s.Caches.Volume("v"); now.Status.Phase != tc.phase || !slices.Equal(woken, tc.woken) {
				t.Errorf("the volume is %s, woken %q, want %s and %q", now.Status.Phase, woken, tc.phase, tc.woken)
			}
		})
	}
}

// Claims are listed page by page, and an answer that is no list of the API server is an error.
func TestClaimOfReplacedVolumeIsOnAnyPage(t *testing.T) {
	volume, claim := replaced()
	s := newFixture(t, volume)
	pages := map[string]*v1.PersistentVolumeClaimList{
		"":     {ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "next"}},
		"next": {ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []v1.PersistentVolumeClaim{*claim}},
	}
	s.Client.(*fake.Clientset).PrependReactor("list", "persistentvolumeclaims",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			options := action.(clienttesting.ListActionImpl).GetListOptions()
			return true, pages[options.Continue], nil
		})
	if owner, err := s.liveOwner(t.Context(), volume); err != nil || owner == nil || owner.UID != "c" {
		t.Errorf("owner %v, %v", owner, err)
	}
	pages["next"].ResourceVersion = ""
	if owner, err := s.liveOwner(t.Context(), volume); err == nil {
		t.Errorf("owner %v of a page without version", owner)
	}
}
