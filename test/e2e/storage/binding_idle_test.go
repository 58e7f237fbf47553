package storage

import (
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// Upstream resyncs every object each 15 seconds. Here a waiting object costs no request
// until an object changes that it waits for.
func TestWaitingObjectsCostNoRequests(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{}, harness.Within(2*harness.Timeout))
	createWaitingObjects(s)
	awaitQuiet(s)
	before := len(s.Requests())
	passUpstreamResync(s)
	after := s.Requests()
	for _, event := range after[before:] {
		t.Errorf("%s sent a request although nothing changed: %s %s/%s %s/%s: %d", event.UserAgent, event.Verb,
			event.Resource, event.Subresource, event.Namespace, event.Name, event.Code)
	}
	t.Logf("%d requests until all objects waited", before)
}

// createWaitingObjects creates objects in every state that can last.
func createWaitingObjects(s *harness.Session) {
	s.T.Helper()
	s.CreateClaim("bound", harness.DeleteClass)
	s.AwaitBound("bound")
	class := harness.NewClass("of-someone-else", "someone.else", v1.PersistentVolumeReclaimDelete,
		storagev1.VolumeBindingImmediate)
	s.CreateStorageClass(class)
	for name, wait := range map[string]struct{ class, reason string }{
		"without-class":      {"", "FailedBinding"},
		"of-missing-class":   {"no-such-class", "ProvisioningFailed"},
		"awaits-consumer":    {harness.WaitClass, "WaitForFirstConsumer"},
		"awaits-provisioner": {"of-someone-else", "ExternalProvisioning"},
	} {
		s.AwaitEvent(s.CreateClaim(name, wait.class), wait.reason)
	}
	s.CreateClaim("names-nothing", s.Namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "nowhere" })
	s.CreateVolume("available", v1.PersistentVolumeReclaimRetain)
	for name, change := range map[string]func(*v1.PersistentVolume){
		"released": func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain },
		"failed": func(v *v1.PersistentVolume) {
			v.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: "kubernetes.io/rbd"}
			v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/nowhere"}}
		},
	} {
		own := func(v *v1.PersistentVolume) { v.Spec.StorageClassName = name }
		volume := s.CreateVolume(name, v1.PersistentVolumeReclaimDelete, own, change)
		s.CreateClaim(name, name)
		s.AwaitBound(name)
		s.DeleteClaim(name)
		s.AwaitVolume(volume.Name, "is "+name,
			func(v *v1.PersistentVolume) bool { return strings.EqualFold(string(v.Status.Phase), name) })
	}
}

// awaitQuiet waits until our programs have sent no request between two lease renewals.
func awaitQuiet(s *harness.Session) {
	s.T.Helper()
	for before := -1; before != len(s.Requests()); {
		before = len(s.Requests())
		awaitLeaseRenewals(s, 1)
	}
}

// passUpstreamResync waits for longer than the resync period of upstream's controller,
// 15 seconds: the API server renews its own lease every 10 seconds.
func passUpstreamResync(s *harness.Session) {
	s.T.Helper()
	awaitLeaseRenewals(s, 3)
}

// awaitLeaseRenewals waits until the API server has renewed its own lease count times.
func awaitLeaseRenewals(s *harness.Session, count int) {
	s.T.Helper()
	source := cache.NewListWatchFromClient(s.Client.CoordinationV1().RESTClient(), "leases", metav1.NamespaceSystem,
		fields.Everything())
	renewals := 0
	_, err := watchtools.UntilWithSync(s.Ctx, source, &coordinationv1.Lease{}, nil, func(event watch.Event) (bool, error) {
		if lease, ok := event.Object.(*coordinationv1.Lease); ok && event.Type == watch.Modified &&
			strings.HasPrefix(lease.Name, "apiserver-") {
			renewals++
		}
		return renewals == count, nil
	})
	s.Must(err, fmt.Sprintf("wait for %d lease renewals", count))
}
