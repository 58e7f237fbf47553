package holder_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// sidecar is a ready Deployment of csi-provisioner with the arguments.
func sidecar(args ...string) *appsv1.Deployment {
	d := pvController(1)
	d.Namespace, d.Name = "storage", "csi"
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "p", Image: "r/csi-provisioner:v6.3.0",
		Args: append([]string{"--csi-address=/run/csi.example.com/csi.sock"}, args...)}}
	return d
}

// A replica that lost its Lease long ago does not work, whatever its pod says.
func TestReadyPodWithStaleLeaseIsUnknown(t *testing.T) {
	const election = "--leader-election"
	for name, tc := range map[string]struct {
		args    []string
		renewed time.Duration
		verdict blocker.Verdict
		text    string
	}{
		"it leads":                     {[]string{election}, time.Second, blocker.Waiting, "held by"},
		"its Lease ran out just now":   {[]string{election}, 20 * time.Second, blocker.Waiting, "which is past, though not for long"},
		"its Lease ran out long ago":   {[]string{election}, 2 * time.Hour, blocker.Unknown, "no replica leads, although pods are ready"},
		"it has no elections any more": {nil, 2 * time.Hour, blocker.Waiting, "counts for nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			lease := &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "csi-example-com"},
				Spec: coordinationv1.LeaseSpec{
					HolderIdentity: ptr.To("csi-0"), LeaseDurationSeconds: ptr.To[int32](15),
					RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(-tc.renewed))),
				},
			}
			objects := clustertest.Objects{"deployments": {sidecar(tc.args...)}, "leases": {lease}}
			volume := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "PersistentVolume", "metadata": map[string]any{"name": "v", "uid": "u", "finalizers": []any{string(finalizer.External)}},
			}}
			family, _ := families.Find(string(finalizer.External), "PersistentVolume", "")
			got := holder.Finder{Reader: clustertest.NewReader(t, objects.ServeHTTP)}.Judge(t.Context(), volume,
				string(finalizer.External), family, "csi.example.com")
			if got.Verdict != tc.verdict || !strings.Contains(fmt.Sprint(got.Evidence), tc.text) {
				t.Errorf("%v %v, want %v with %q in %v", got.Verdict, got.Reason, tc.verdict, tc.text, got.Evidence)
			}
			if waits := strings.Contains(got.Next, "wait for"); waits != (tc.verdict == blocker.Waiting) {
				t.Errorf("the next step is %q", got.Next)
			}
		})
	}
}

// An old Deployment that was stopped is not to be started beside the program that leads.
func TestStoppedWorkloadIsNotStartedBesideLeader(t *testing.T) {
	for holds, want := range map[string]string{"elsewhere": "wait for external-provisioner, whose leader is elsewhere",
		"csi-0": "start Deployment storage/csi again"} {
		deployment := sidecar("--leader-election")
		deployment.Spec.Replicas, deployment.Status.ReadyReplicas = ptr.To[int32](0), 0
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "csi-example-com"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holds, LeaseDurationSeconds: ptr.To[int32](60),
				RenewTime: ptr.To(metav1.NewMicroTime(time.Now()))},
		}
		family, _ := families.Find(string(finalizer.External), "PersistentVolume", "")
		reader := clustertest.NewReader(t, clustertest.Objects{"deployments": {deployment}, "leases": {lease}}.ServeHTTP)
		got := holder.Finder{Reader: reader}.Look(t.Context(), family.Controller, "csi.example.com")
		if !strings.HasPrefix(got.Next, "# "+want) || strings.Contains(got.Next, "scale") != (holds == "csi-0") {
			t.Errorf("the leader is %s, and the next step is %q, want %q", holds, got.Next, want)
		}
	}
}

// A provisioner belongs to its driver, and is installed with it.
func TestMissingSidecarIsInstalledWithItsDriver(t *testing.T) {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "csi-example-com"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("csi-0"), LeaseDurationSeconds: ptr.To[int32](15),
			RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(-time.Hour)))},
	}
	family, _ := families.Find(string(finalizer.External), "PersistentVolume", "")
	reader := clustertest.NewReader(t, clustertest.Objects{"leases": {lease}}.ServeHTTP)
	got := holder.Finder{Reader: reader}.Look(t.Context(), family.Controller, "csi.example.com")
	if want := "# install driver csi.example.com again, with its external-provisioner, so that it cleans up"; got.Next != want {
		t.Errorf("the next step is %q, want %q", got.Next, want)
	}
}
