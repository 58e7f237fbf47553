package storage

import (
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

// A snapshot that is being deleted is explained itself: no step waits for it, or deletes it again.
func TestDeletedUserIsExplainedNotDeletedAgain(t *testing.T) {
	snapshot := func(name string, deleted bool) *snapshotv1.VolumeSnapshot {
		s := &snapshotv1.VolumeSnapshot{
			TypeMeta: metav1.TypeMeta{APIVersion: snapshotv1.SchemeGroupVersion.String(), Kind: "VolumeSnapshot"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "u",
				Finalizers: []string{single.snapshotFinalizer}},
			Spec: snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To("data")}},
		}
		if deleted {
			s.DeletionTimestamp = ptr.To(metav1.NewTime(time.Now()))
		}
		return s
	}
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", Finalizers: []string{snapshotSource},
			DeletionTimestamp: ptr.To(metav1.NewTime(time.Now()))},
	}
	object, err := toUnstructured("v1", "PersistentVolumeClaim", claim)
	if err != nil {
		t.Fatal(err)
	}
	_, controller := provisioner("r/snapshot-controller:v8", "")
	objects := clustertest.Objects{
		"deployments":     {&controller},
		"volumesnapshots": {snapshot("old", true), snapshot("new", false), snapshot("older", true)},
	}
	e := explorer{reader: clustertest.NewReader(t, objects.ServeHTTP)}
	names := map[string]int{}
	for _, b := range explainClaim(t.Context(), e, object) {
		names[b.Object.Name] = len(b.Blockers)
		deletes := strings.Contains(b.Next, "delete volumesnapshot "+b.Object.Name)
		if living := b.Object.Name == "new"; deletes != living || strings.Contains(b.Next, "wait until") != living {
			t.Errorf("the next step for %s is %q", b.Object.Name, b.Next)
		}
		if b.Reason != blocker.SnapshotRunning {
			t.Errorf("the reason for %s is %v", b.Object.Name, b.Reason)
		}
	}
	if len(names) != 3 || names["new"] != 0 || names["old"] != 1 || names["older"] != 1 {
		t.Errorf("the blockers, with the number of their own, are %v", names)
	}
}

// Only an owner that creates pods creates a deleted pod again.
func TestOwnerThatCreatesNoPodsIsNoWorkload(t *testing.T) {
	for owner, want := range map[metav1.OwnerReference]bool{
		{APIVersion: "v1", Kind: "PersistentVolumeClaim"}:      false,
		{APIVersion: "v1", Kind: "ConfigMap"}:                  false,
		{APIVersion: "apps/v1", Kind: "ControllerRevision"}:    false,
		{APIVersion: "v1", Kind: "ReplicationController"}:      true,
		{APIVersion: "apps/v1", Kind: "StatefulSet"}:           true,
		{APIVersion: "batch/v1", Kind: "Job"}:                  true,
		{APIVersion: "postgresql.cnpg.io/v1", Kind: "Cluster"}: true,
	} {
		if got := createsPods(&owner); got != want {
			t.Errorf("%s %s creates pods: %v, want %v", owner.APIVersion, owner.Kind, got, want)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "importer",
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "PersistentVolumeClaim", Name: "imp", UID: "u", Controller: ptr.To(true)},
		}}}
	if next := nextOfPod(t.Context(), commandsOnly{}, pod); strings.Contains(next, "stop the workload") ||
		!strings.Contains(next, "delete the pod") {
		t.Errorf("the next step is %q", next)
	}
}
