package protection_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		if s.Confirmed && action == protection.ConfirmClaim {
			t.Errorf("confirmed twice: %+v", s)
		}
	}
}

func TestDecideVolumeOnEveryState(t *testing.T) {
	for bits := range 16 {
		s := protection.VolumeState{Deleting: bits&1 != 0, Protected: bits&2 != 0, Bound: bits&4 != 0, AwaitsReclaim: bits&8 != 0}
		want := protection.KeepVolume
		switch {
		case !s.Deleting && !s.Protected:
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

func TestUses(t *testing.T) {
	named := v1.Volume{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}}
	scratch := v1.Volume{Name: "scratch", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}}
	yes, zero := true, int64(0)
	pod := func(node string, volume v1.Volume, change ...func(*v1.Pod)) *v1.Pod {
		p := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "pod-uid"},
			Spec:       v1.PodSpec{NodeName: node, Volumes: []v1.Volume{volume}},
		}
		for _, f := range change {
			f(p)
		}
		return p
	}
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim"}}
	owned := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-scratch",
		OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: "pod", UID: "pod-uid", Controller: &yes}}}}
	foreign := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-scratch"}}
	finished := func(p *v1.Pod) { p.Status.Phase = v1.PodSucceeded }
	forced := func(p *v1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{}, &zero }

	for name, tc := range map[string]struct {
		pod   *v1.Pod
		claim *v1.PersistentVolumeClaim
		want  bool
	}{
		"scheduled pod":                              {pod("node", named), claim, true},
		"finished pod":                               {pod("node", named, finished), claim, true},
		"unscheduled pod":                            {pod("", named), claim, false},
		"pod of another claim":                       {pod("node", scratch), claim, false},
		"claim of an ephemeral volume":               {pod("node", scratch), owned, true},
		"claim with the name of an ephemeral volume": {pod("node", scratch), foreign, false},
		"ephemeral volume of a terminated pod":       {pod("node", scratch, forced), owned, false},
		"claim of a terminated pod":                  {pod("node", named, forced), claim, true},
		"pod in another namespace":                   {pod("node", named, func(p *v1.Pod) { p.Namespace = "other" }), claim, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := protection.Uses(tc.pod, tc.claim); got != tc.want {
				t.Errorf("Uses = %v, want %v", got, tc.want)
			}
		})
	}
}
