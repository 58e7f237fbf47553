package teardown

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// Rows 01, 02 and 30.
func TestRow01To30DeletesKeepsAndNamesNothingElse(t *testing.T) {
	eachPair(t, harness.Setup{}, deletesAndKeeps)
}

func deletesAndKeeps(t *testing.T, r *rig) {
	r.CreateClaim("data", harness.DeleteClass)
	r.CreateClaim("archive", harness.RetainClass)
	deleted, kept := r.AwaitBound("data"), r.AwaitBound("archive")
	r.createUser("a", "data")
	r.createUser("b", "archive")
	createService(r.Session, "web")
	service := awaitService(r.Session, "web", "has an address", hasAddress)
	r.mustComplete()
	if r.IsStored(harness.Handle(deleted)) || !r.IsStored(harness.Handle(kept)) {
		t.Errorf("deletable disk stored: %t, kept disk stored: %t", r.IsStored(harness.Handle(deleted)),
			r.IsStored(harness.Handle(kept)))
	}
	if _, exists := balancerOf(r.Session, service); exists {
		t.Error("the load balancer is left")
	}
	volume, err := r.Client.CoreV1().PersistentVolumes().Get(r.Ctx, kept.Name, metav1.GetOptions{})
	r.Must(err, "read the kept volume")
	if _, labeled := volume.Labels[alive.PreserveLabel]; !labeled || volume.Status.Phase != v1.VolumeBound {
		t.Errorf("kept volume: labels %v, phase %s", volume.Labels, volume.Status.Phase)
	}
	pods, err := r.Client.CoreV1().Pods(r.Namespace).List(r.Ctx, metav1.ListOptions{})
	r.Must(err, "list pods")
	if len(pods.Items) != 0 {
		t.Errorf("%d pods are left", len(pods.Items))
	}
	_, err = r.Client.CoreV1().PersistentVolumeClaims(r.Namespace).Create(r.Ctx, r.NewClaim("late", harness.DeleteClass),
		metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a new claim after the end: %v", err)
	}
}
