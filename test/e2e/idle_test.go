package e2e

import (
	"fmt"
	"slices"
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

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Upstream looks at every object each 15 seconds. Here, whoever waits costs nothing
// until something happens that can help him.
func TestObjectsThatWaitCostNoRequests(t *testing.T) {
	t.Parallel()
	s := enterFor(t, shared(t, setup{honor: true, alone: "idle"}), 2*patience)
	s.leaveWaiting()
	s.awaitQuiet()
	before := len(s.requests())
	s.passUpstreamsPeriod()
	after := s.requests()
	for _, event := range after[before:] {
		t.Errorf("nothing happened, and %s asked: %s %s/%s %s/%s: %d", event.UserAgent, event.Verb, event.Resource, event.Subresource, event.Namespace, event.Name, event.Code)
	}
	t.Logf("%d requests until all waited, none after", before)
}

// leaveWaiting makes objects in every state in which one can stay.
func (s *scene) leaveWaiting() {
	s.t.Helper()
	s.createClaim("bound", deleteClass)
	s.awaitBound("bound")
	class := newClass("of-someone-else", "someone.else", v1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate)
	_, err := s.client.StorageV1().StorageClasses().Create(s.ctx, &class, metav1.CreateOptions{})
	s.must(err, "create class")
	for name, wait := range map[string]struct{ class, reason string }{
		"without-class":      {"", "FailedBinding"},
		"of-missing-class":   {"no-such-class", "ProvisioningFailed"},
		"awaits-consumer":    {waitClass, "WaitForFirstConsumer"},
		"awaits-provisioner": {"of-someone-else", "ExternalProvisioning"},
	} {
		s.awaitEvent(s.createClaim(name, wait.class), wait.reason)
	}
	s.createClaim("names-nothing", s.namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "nowhere" })
	s.createVolume("available", v1.PersistentVolumeReclaimRetain)
	for name, change := range map[string]func(*v1.PersistentVolume){
		"released": func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain },
		"failed": func(v *v1.PersistentVolume) {
			v.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: "kubernetes.io/rbd"}
			v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/nowhere"}}
		},
	} {
		own := func(v *v1.PersistentVolume) { v.Spec.StorageClassName = name }
		volume := s.createVolume(name, v1.PersistentVolumeReclaimDelete, own, change)
		s.createClaim(name, name)
		s.awaitBound(name)
		s.deleteClaim(name)
		s.awaitVolume(volume.Name, "is "+name, func(v *v1.PersistentVolume) bool { return strings.EqualFold(string(v.Status.Phase), name) })
	}
}

// requests are those of our programs so far, but for their watches.
func (s *scene) requests() []sandbox.Event {
	s.t.Helper()
	events, err := sandbox.ReadAudit(s.plane.AuditLog)
	s.must(err, "read audit log")
	return slices.DeleteFunc(events, func(e sandbox.Event) bool {
		return !strings.HasPrefix(e.User, "system:serviceaccount:"+deploy.Namespace) || e.Verb == "watch"
	})
}

// awaitQuiet waits until our programs have asked nothing between two beats.
func (s *scene) awaitQuiet() {
	s.t.Helper()
	for before := -1; before != len(s.requests()); {
		before = len(s.requests())
		s.awaitBeats(1)
	}
}

// passUpstreamsPeriod waits for longer than upstream's controller lets pass between
// two looks at everything, 15 seconds: until the API server has twice renewed the
// lease that is its own, of which it does so every 10 seconds.
func (s *scene) passUpstreamsPeriod() {
	s.t.Helper()
	s.awaitBeats(3)
}

// awaitBeats waits until the API server has renewed its own lease so often.
func (s *scene) awaitBeats(count int) {
	s.t.Helper()
	source := cache.NewListWatchFromClient(s.client.CoordinationV1().RESTClient(), "leases", metav1.NamespaceSystem, fields.Everything())
	beats := 0
	_, err := watchtools.UntilWithSync(s.ctx, source, &coordinationv1.Lease{}, nil, func(event watch.Event) (bool, error) {
		if lease, ok := event.Object.(*coordinationv1.Lease); ok && event.Type == watch.Modified && strings.HasPrefix(lease.Name, "apiserver-") {
			beats++
		}
		return beats == count, nil
	})
	s.must(err, fmt.Sprintf("wait for %d beats", count))
}
