package volume

import (
	"context"
	"errors"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
)

func inDeletion(v *v1.PersistentVolume) {
	now := metav1.Now()
	v.DeletionTimestamp = &now
}

func protected(v *v1.PersistentVolume) { v.Finalizers = []string{string(finalizer.VolumeProtection)} }

// ofDriver is a static volume of a CSI driver that waits for its provisioner.
func ofDriver(v *v1.PersistentVolume) {
	v.Annotations = map[string]string{reclaim.Annotation: reclaim.AnnotationPending}
	v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "csi.example.com",
		VolumeHandle: "h"}}
}

func blockMode(claim *v1.PersistentVolumeClaim) *v1.PersistentVolumeClaim {
	mode := v1.PersistentVolumeBlock
	claim.Spec.VolumeMode = &mode
	return claim
}

// guarded returns a controller for the volume, its claim (nil for none) and an empty record of requests.
func guarded(t *testing.T, volume *v1.PersistentVolume, claim *v1.PersistentVolumeClaim) (*fixture, *fake.Clientset) {
	t.Helper()
	objects := []runtime.Object{volume}
	if claim != nil {
		objects = append(objects, claim)
	}
	s := newFixture(t, objects...)
	if claim != nil {
		s.must(s.Caches.Claims.GetStore().Add(claim))
	}
	client := s.Client.(*fake.Clientset)
	client.ClearActions()
	return s, client
}

func requests(client *fake.Clientset) (sent []string) {
	for _, action := range client.Actions() {
		sent = append(sent, action.GetVerb()+" "+action.GetResource().Resource)
	}
	return sent
}

func TestVolumeOlderThanOwnWriteIsRequeued(t *testing.T) {
	for name, phase := range map[string]v1.PersistentVolumePhase{"phase is missing": v1.VolumePending,
		"protection is missing": v1.VolumeAvailable} {
		t.Run(name, func(t *testing.T) {
			volume := releasedVolume(retains, createdByPerson, unclaimed, inPhase(phase))
			s, client := guarded(t, volume, nil)
			written := volume.DeepCopy()
			written.ResourceVersion = "2"
			s.Versions.RecordWrite(written)
			for _, reconcile := range []func(context.Context, string) error{s.Reconcile, s.Protect} {
				if err := reconcile(t.Context(), "v"); !errors.Is(err, controller.ErrStaleCache) {
					t.Errorf("%v, want %v", err, controller.ErrStaleCache)
				}
			}
			if sent := requests(client); len(sent) > 0 {
				t.Errorf("requests %q, want none", sent)
			}
			s.Versions.Forget(volume.UID)
			s.must(s.Reconcile(t.Context(), "v"))
			s.must(s.Protect(t.Context(), "v"))
			if sent := requests(client); !slices.Equal(sent, []string{"patch persistentvolumes"}) {
				t.Errorf("without a record: requests %q, want one patch", sent)
			}
		})
	}
}

func TestUnboundClaimIsEnqueuedWithoutEvent(t *testing.T) {
	s, client := guarded(t, releasedVolume(retains, createdByPerson, phaseAvailable), claimOfName("c", ""))
	var woken []string
	s.WakeClaim = func(claim string) { woken = append(woken, claim) }
	s.must(s.Reconcile(t.Context(), "v"))
	if !slices.Equal(woken, []string{"ns/claim"}) || len(s.events.events) > 0 || len(client.Actions()) > 0 {
		t.Errorf("enqueued %q, events %q, requests %q", woken, s.events.events, requests(client))
	}
}

func TestDeletedVolumeOfUnboundClaimIsReleasedByGate(t *testing.T) {
	for honor, want := range map[bool]v1.PersistentVolumePhase{true: v1.VolumeReleased, false: v1.VolumePending} {
		s, _ := guarded(t, releasedVolume(deletes, by("csi.example.com"), phasePending, inDeletion, protected),
			claimOfName("c", ""))
		s.Honor = honor
		s.must(s.Reconcile(t.Context(), "v"))
		s.updateCaches()
		if phase := s.Caches.Volume("v").Status.Phase; phase != want {
			t.Errorf("gate %v: the volume is %s, want %s", honor, phase, want)
		}
	}
}

func TestReleaseRemovesProtectionInTheSameWrite(t *testing.T) {
	s, client := guarded(t, claimedBy(deleting(v1.VolumeBound)), nil)
	s.must(s.Reconcile(t.Context(), "v"))
	if sent := requests(client); !slices.Equal(sent, []string{"get persistentvolumeclaims", "patch persistentvolumes"}) {
		t.Errorf("requests %q, want a read of the claim and one patch", sent)
	}
	now, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) && (err != nil || len(now.Finalizers) > 0) {
		t.Errorf("volume %v, %v, want no pv-protection", now, err)
	}
}

// The provisioner deletes the volume once it is Released: pv-controller must not have to
// remove a finalizer at the same time.
func TestReleaseForProvisionerRemovesProtection(t *testing.T) {
	byDriver := func(v *v1.PersistentVolume) { v.Finalizers = append(v.Finalizers, string(finalizer.External)) }
	s, client := guarded(t, releasedVolume(deletes, phaseBound, ofDriver, createdByPerson, protected, byDriver), nil)
	s.must(s.Reconcile(t.Context(), "v"))
	if sent := requests(client); !slices.Equal(sent, []string{"get persistentvolumeclaims", "patch persistentvolumes"}) {
		t.Errorf("requests %q, want a read of the claim and one patch", sent)
	}
	now, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
	s.must(err)
	if now.Status.Phase != v1.VolumeReleased || !slices.Equal(now.Finalizers, []string{string(finalizer.External)}) {
		t.Errorf("the volume is %s with %q, want Released with the finalizer of the provisioner", now.Status.Phase,
			now.Finalizers)
	}
}

// Another program may have added pv-protection to a volume that its provisioner is about to
// delete: it would add it again.
func TestProtectionOfUndeletedVolumeIsNotRemovedAlone(t *testing.T) {
	byDriver := func(v *v1.PersistentVolume) { v.Finalizers = append(v.Finalizers, string(finalizer.External)) }
	s, client := guarded(t, releasedVolume(deletes, phaseReleased, ofDriver, createdByPerson, protected, byDriver), nil)
	s.must(s.Protect(t.Context(), "v"))
	if sent := requests(client); len(sent) > 0 {
		t.Errorf("requests %q, want none", sent)
	}
}

// If pv-protection came later, a user could delete the volume before.
func TestVolumeThatIsBoundAgainIsProtectedAtOnce(t *testing.T) {
	byDriver := func(v *v1.PersistentVolume) { v.Finalizers = []string{string(finalizer.External)} }
	s, client := guarded(t, releasedVolume(deletes, phaseReleased, ofDriver, createdByPerson, byDriver),
		claimOfName("c", "v"))
	s.must(s.Reconcile(t.Context(), "v"))
	sent := requests(client)
	now, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
	s.must(err)
	if now.Status.Phase != v1.VolumeBound || !finalizer.Has(now.Finalizers, finalizer.VolumeProtection) || len(sent) != 1 {
		t.Errorf("the volume is %s with %q after %q, want one write", now.Status.Phase, now.Finalizers, sent)
	}
}

func TestOnlyVolumesThatMayNeedProtectionAreEnqueuedForIt(t *testing.T) {
	for name, tc := range map[string]struct {
		change   []func(*v1.PersistentVolume)
		enqueued bool
	}{
		"new volume":                  {nil, true},
		"protected volume":            {[]func(*v1.PersistentVolume){protected}, false},
		"deleted volume":              {[]func(*v1.PersistentVolume){protected, inDeletion}, true},
		"deleted volume, unprotected": {[]func(*v1.PersistentVolume){inDeletion}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := guarded(t, releasedVolume(retains, append(tc.change, createdByPerson)...), nil)
			queue := s.Loops()[1].Step()
			s.must(s.Reconcile(t.Context(), "v"))
			if due, _ := queue.Keys(); (len(due) > 0) != tc.enqueued {
				t.Errorf("enqueued %q, want the volume: %v", due, tc.enqueued)
			}
		})
	}
}

func TestProtect(t *testing.T) {
	getClaim, patchVolume := "get persistentvolumeclaims", "patch persistentvolumes"
	for name, tc := range map[string]struct {
		volume   *v1.PersistentVolume
		claim    *v1.PersistentVolumeClaim
		requests []string
	}{
		"finalizer of the plugin is missing": {releasedVolume(deletes, phaseBound), claimOfName("c", "v"), nil},
		"phase is wrong":                     {releasedVolume(retains, phaseAvailable), claimOfName("c", "v"), nil},
		"bound":                              {releasedVolume(retains, phaseBound), claimOfName("c", "v"), []string{patchVolume}},
		"deleted, bound":                     {releasedVolume(retains, phaseBound, inDeletion, protected), claimOfName("c", "v"), nil},
		"deleted, modes differ": {releasedVolume(retains, phaseAvailable, inDeletion, protected),
			blockMode(claimOfName("c", "")), []string{patchVolume}},
		"deleted, awaits reclaim, claim unbound":  {releasedVolume(deletes, ofDriver, inDeletion, protected), claimOfName("c", ""), []string{getClaim, patchVolume}},
		"would await reclaim, not deleted":        {releasedVolume(deletes, ofDriver, protected), claimOfName("c", ""), nil},
		"deleted, policy Retain, claim not bound": {releasedVolume(retains, ofDriver, inDeletion, protected), claimOfName("c", ""), []string{patchVolume}},
	} {
		t.Run(name, func(t *testing.T) {
			s, client := guarded(t, tc.volume, tc.claim)
			s.must(s.Protect(t.Context(), "v"))
			if sent := requests(client); !slices.Equal(sent, tc.requests) {
				t.Errorf("requests %q, want %q", sent, tc.requests)
			}
		})
	}
}
