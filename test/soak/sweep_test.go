package main

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// A volume that was deleted with policy Retain came back with a restored etcd: the policy Delete comes too
// late for its disk (seed 1005428441).
func TestPolicyOfDeletedVolumeIsLeft(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		deleted *metav1.Time
		policy  v1.PersistentVolumeReclaimPolicy
		want    bool
	}{
		"not deleted, Retain": {nil, v1.PersistentVolumeReclaimRetain, false},
		"deleted, Retain":     {&now, v1.PersistentVolumeReclaimRetain, true},
		"deleted, Delete":     {&now, v1.PersistentVolumeReclaimDelete, false},
	} {
		volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: tc.deleted},
			Spec: v1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: tc.policy}}
		if got := isDeletedForGood(volume); got != tc.want {
			t.Errorf("%s: deleted for good: %v, want %v", name, got, tc.want)
		}
	}
}

// A pod that was being deleted came back with a restored etcd, and its claim did not (seed 306805500).
func TestPodsWithoutClaimAreSwept(t *testing.T) {
	pod := func(namespace, name string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	u := &users{view: newView(nil)}
	u.view.pods = map[string]*v1.Pod{"a": pod(space, "used"), "b": pod(space, "left"), "c": pod("other", "left")}
	claims := []*v1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: "used"}},
		{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "left"}}}
	if names := u.podsWithout(claims); len(names) != 1 || names[0] != "left" {
		t.Errorf("pods without a claim: %v", names)
	}
}

// A static volume came back without a phase, and was deleted before it was bound. No provisioner led then, which could
// have noted that the disk is to go (seed 16).
func TestDiskOfUnboundVolumeMayStay(t *testing.T) {
	claim, ours := &v1.ObjectReference{Name: "claim"}, []string{string(finalizer.External)}
	for name, tc := range map[string]struct {
		claim      *v1.ObjectReference
		phase      v1.PersistentVolumePhase
		finalizers []string
		want       bool
	}{
		"never claimed":                    {nil, v1.VolumeAvailable, nil, true},
		"claimed, not bound":               {claim, v1.VolumePending, nil, true},
		"claimed, without a phase":         {claim, "", nil, true},
		"not bound, with the finalizer":    {claim, v1.VolumePending, ours, false},
		"bound":                            {claim, v1.VolumeBound, nil, false},
		"released":                         {claim, v1.VolumeReleased, nil, false},
		"released, its reclaim has failed": {claim, v1.VolumeFailed, nil, false},
	} {
		volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Finalizers: tc.finalizers},
			Spec: v1.PersistentVolumeSpec{ClaimRef: tc.claim}, Status: v1.PersistentVolumeStatus{Phase: tc.phase}}
		if got := mayStay(volume); got != tc.want {
			t.Errorf("%s: the disk may stay: %v, want %v", name, got, tc.want)
		}
	}
}
