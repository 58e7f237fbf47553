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
		if action == protection.Unprotect && (!s.Deleting || !s.Protected || s.Used || !s.Confirmed) {
			t.Errorf("a claim goes too early: %+v", s)
		}
		if action == protection.Protect && (s.Deleting || s.Protected) {
			t.Errorf("an impossible or useless write: %+v", s)
		}
		if s.Deleting && s.Protected && !s.Used && action == protection.Wait {
			t.Errorf("stuck: %+v", s)
		}
		if s.Confirmed && action == protection.Confirm {
			t.Errorf("confirms for ever: %+v", s)
		}
	}
}

func TestDecideVolumeOnEveryState(t *testing.T) {
	for bits := range 16 {
		s := protection.VolumeState{Deleting: bits&1 != 0, Protected: bits&2 != 0, Bound: bits&4 != 0, AwaitsReclaim: bits&8 != 0}
		want := protection.Wait
		switch {
		case !s.Deleting && !s.Protected:
			want = protection.Protect
		case s.Deleting && s.Protected && !s.Bound && !s.AwaitsReclaim:
			want = protection.Unprotect
		}
		if got := protection.DecideVolume(s); got != want {
			t.Errorf("DecideVolume(%+v) = %v, want %v", s, got, want)
		}
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
		"a scheduled pod":                            {pod("node", named), claim, true},
		"a finished pod, until its object is gone":   {pod("node", named, finished), claim, true},
		"a pod never scheduled":                      {pod("", named), claim, false},
		"a pod of another claim":                     {pod("node", scratch), claim, false},
		"an ephemeral volume's own claim":            {pod("node", scratch), owned, true},
		"a claim that only has the ephemeral's name": {pod("node", scratch), foreign, false},
		"an ephemeral volume of a pod shut down":     {pod("node", scratch, forced), owned, false},
		"a named claim of a pod shut down":           {pod("node", named, forced), claim, true},
		"a pod in another namespace":                 {pod("node", named, func(p *v1.Pod) { p.Namespace = "other" }), claim, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := protection.Uses(tc.pod, tc.claim); got != tc.want {
				t.Errorf("Uses = %v, want %v", got, tc.want)
			}
		})
	}
}
