package protection_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/protection"
)

func TestDecideClaimOnEveryState(t *testing.T) {
	for bits := range 16 {
		s := protection.ClaimState{Deleting: bits&1 != 0, Protected: bits&2 != 0, Used: bits&4 != 0, Confirmed: bits&8 != 0}
		action := protection.DecideClaim(s)
		if action == protection.UnprotectClaim && (!s.Deleting || !s.Protected || s.Used || !s.Confirmed) {
			t.Errorf("finalizer is removed too early: %+v", s)
		}
		if action == protection.ProtectClaim && (s.Deleting || s.Protected) {
			t.Errorf("finalizer cannot be added: %+v", s)
		}
		if s.Deleting && s.Protected && !s.Used && action == protection.KeepClaim {
			t.Errorf("stuck: %+v", s)
		}
		if !s.Deleting && !s.Protected && action != protection.ProtectClaim {
			t.Errorf("claim stays without the finalizer: %+v", s)
		}
		if s.Confirmed && action == protection.ConfirmClaim {
			t.Errorf("confirmed twice: %+v", s)
		}
	}
}

func TestDecideVolumeOnEveryState(t *testing.T) {
	for bits := range 32 {
		s := protection.VolumeState{Deleting: bits&1 != 0, Protected: bits&2 != 0, Bound: bits&4 != 0,
			AwaitsReclaim: bits&8 != 0, Reclaiming: bits&16 != 0}
		want := protection.KeepVolume
		switch {
		case !s.Deleting && !s.Protected && !s.Reclaiming:
			want = protection.ProtectVolume
		case s.Deleting && s.Protected && !s.Bound && !s.AwaitsReclaim:
			want = protection.UnprotectVolume
		}
		if got := protection.DecideVolume(s); got != want {
			t.Errorf("DecideVolume(%+v) = %v, want %v", s, got, want)
		}
	}
}

func TestActionsHaveDistinctNames(t *testing.T) {
	names := map[string]bool{}
	for action := protection.KeepClaim; action <= protection.UnprotectClaim; action++ {
		names[action.String()] = true
	}
	for action := protection.KeepVolume; action <= protection.UnprotectVolume; action++ {
		names[action.String()] = true
	}
	for action := protection.KeepSnapshot; action <= protection.UnprotectSnapshot; action++ {
		names[action.String()] = true
	}
	if len(names) != 10 {
		t.Errorf("names = %v, want 10", names)
	}
}

// podWith returns a pod on the node with the volume.
func podWith(node string, volume v1.Volume, change ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "pod-uid"},
		Spec:       v1.PodSpec{NodeName: node, Volumes: []v1.Volume{volume}},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

func TestUses(t *testing.T) {
	named := v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}}
	scratch := v1.Volume{Name: "scratch", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim"}}
	owned := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-scratch",
		OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: "pod", UID: "pod-uid", Controller: ptr.To(true)}}}}
	foreign := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-scratch"}}
	finished := func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded }
	deleted := func(period int64) func(*v1.Pod) {
		return func(p *v1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{}, &period }
	}
	undated := func(p *v1.Pod) { p.DeletionGracePeriodSeconds = ptr.To[int64](0) }
	graceless := func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	empty := v1.Volume{Name: "claim", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}
	ownedByPod := owned.DeepCopy()
	ownedByPod.Name = "pod-claim"

	for name, tc := range map[string]struct {
		pod   *v1.Pod
		claim *v1.PersistentVolumeClaim
		want  bool
	}{
		"scheduled pod":                              {podWith("node", named), claim, true},
		"finished pod":                               {podWith("node", named, finished), claim, true},
		"unscheduled pod":                            {podWith("", named), claim, false},
		"pod of another claim":                       {podWith("node", scratch), claim, false},
		"claim of an ephemeral volume":               {podWith("node", scratch), owned, true},
		"claim with the name of an ephemeral volume": {podWith("node", scratch), foreign, false},
		"ephemeral volume of a terminated pod":       {podWith("node", scratch, deleted(0)), owned, false},
		"claim of a terminated pod":                  {podWith("node", named, deleted(0)), claim, true},
		"pod of a claim with another name":           {podWith("node", named), foreign, false},
		"volume of another kind":                     {podWith("node", empty), ownedByPod, false},
		"other claim that the pod owns":              {podWith("node", scratch), ownedByPod, false},
		"ephemeral volume of a stopping pod":         {podWith("node", scratch, deleted(30)), owned, true},
		"ephemeral volume of a pod without deletion": {podWith("node", scratch, undated), owned, true},
		"ephemeral volume of a pod without a period": {podWith("node", scratch, graceless), owned, true},
		"pod in another namespace":                   {podWith("node", named, func(p *v1.Pod) { p.Namespace = "other" }), claim, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := protection.Uses(tc.pod, tc.claim); got != tc.want {
				t.Errorf("Uses = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestClaimNames(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod"}, Spec: v1.PodSpec{Volumes: []v1.Volume{
		{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}},
		{Name: "tmp", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
		{Name: "scratch", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}},
	}}}
	if got, want := protection.ClaimNames(pod), []string{"claim", "pod-scratch"}; !slices.Equal(got, want) {
		t.Errorf("ClaimNames = %v, want %v", got, want)
	}
}

func TestVolumeStateOfPhase(t *testing.T) {
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{},
		Finalizers: []string{"kubernetes.io/pv-protection"}}}
	for phase, want := range map[v1.PersistentVolumePhase]protection.VolumeState{
		v1.VolumeBound:    {Deleting: true, Protected: true, Bound: true},
		v1.VolumeReleased: {Deleting: true, Protected: true, AwaitsReclaim: true},
	} {
		if got := protection.VolumeStateOf(volume, phase, want.AwaitsReclaim); got != want {
			t.Errorf("VolumeStateOf(%s) = %+v, want %+v", phase, got, want)
		}
	}
	if got := protection.VolumeStateOf(&v1.PersistentVolume{}, v1.VolumeAvailable,
		false); got != (protection.VolumeState{}) {
		t.Errorf("VolumeStateOf(a new volume) = %+v", got)
	}
	if !protection.RemovesWithPhase(volume, v1.VolumeReleased, false) ||
		protection.RemovesWithPhase(volume, v1.VolumeReleased, true) {
		t.Error("the write of Released must remove pv-protection unless the volume awaits its reclaim")
	}
}

// TestReclaimedVolumeNeedsNoProtection: the finalizer of the provisioner keeps the volume,
// so pv-protection is removed in the write that says Released.
func TestReclaimedVolumeNeedsNoProtection(t *testing.T) {
	for name, tc := range map[string]struct {
		phase      v1.PersistentVolumePhase
		policy     v1.PersistentVolumeReclaimPolicy
		finalizers []string
		removes    bool
	}{
		"released":                       {v1.VolumeReleased, v1.PersistentVolumeReclaimDelete, []string{pvProtection, external}, true},
		"failed":                         {v1.VolumeFailed, v1.PersistentVolumeReclaimDelete, []string{pvProtection, external}, true},
		"bound":                          {v1.VolumeBound, v1.PersistentVolumeReclaimDelete, []string{pvProtection, external}, false},
		"available":                      {v1.VolumeAvailable, v1.PersistentVolumeReclaimDelete, []string{pvProtection, external}, false},
		"kept":                           {v1.VolumeReleased, v1.PersistentVolumeReclaimRetain, []string{pvProtection, external}, false},
		"recycled":                       {v1.VolumeReleased, v1.PersistentVolumeReclaimRecycle, []string{pvProtection, external}, false},
		"without the other finalizer":    {v1.VolumeReleased, v1.PersistentVolumeReclaimDelete, []string{pvProtection}, false},
		"without pv-protection":          {v1.VolumeReleased, v1.PersistentVolumeReclaimDelete, []string{external}, false},
		"with the finalizer of a plugin": {v1.VolumeReleased, v1.PersistentVolumeReclaimDelete, []string{pvProtection, "kubernetes.io/pv-controller"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Finalizers: tc.finalizers}}
			volume.Spec.PersistentVolumeReclaimPolicy = tc.policy
			if got := protection.RemovesWithPhase(volume, tc.phase, false); got != tc.removes {
				t.Errorf("the write of %s removes pv-protection: %v, want %v", tc.phase, got, tc.removes)
			}
		})
	}
}

const (
	pvProtection = "kubernetes.io/pv-protection"
	external     = "external-provisioner.volume.kubernetes.io/finalizer"
)
