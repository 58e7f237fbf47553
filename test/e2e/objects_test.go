package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// scene is one test's part of a cluster: a namespace of its own.
type scene struct {
	*cluster
	t         testing.TB
	ctx       context.Context
	namespace string
}

// enter makes a namespace for the test.
func enter(t testing.TB, c *cluster) *scene {
	t.Helper()
	return enterFor(t, c, patience)
}

// enterFor is enter for a test that may take as long as given.
func enterFor(t testing.TB, c *cluster, most time.Duration) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	t.Cleanup(cancel)
	s := &scene{cluster: c, t: t, ctx: ctx}
	namespace, err := c.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{})
	s.must(err, "create namespace")
	s.namespace = namespace.Name
	return s
}

func (s *scene) must(err error, what string) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// newClaim returns a claim of the class for 1Mi; change may alter it.
func (s *scene) newClaim(name, class string, change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:        v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")}},
		},
	}
	for _, f := range change {
		f(claim)
	}
	return claim
}

func (s *scene) createClaim(name, class string, change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	s.t.Helper()
	claim, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Create(s.ctx, s.newClaim(name, class, change...), metav1.CreateOptions{})
	s.must(err, "create claim")
	return claim
}

// newVolume returns a static volume of 1Mi with the handle, in a class of the
// test's own, so that no other test's claim finds it.
func (s *scene) newVolume(handle string, policy v1.PersistentVolumeReclaimPolicy, change ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-" + strings.ToLower(handle)},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: policy,
			StorageClassName:              s.namespace,
			AccessModes:                   []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Capacity:                      v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")},
			PersistentVolumeSource:        v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: s.driver.DriverName, VolumeHandle: handle}},
		},
	}
	for _, f := range change {
		f(volume)
	}
	return volume
}

func (s *scene) createVolume(handle string, policy v1.PersistentVolumeReclaimPolicy, change ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	s.t.Helper()
	volume, err := s.client.CoreV1().PersistentVolumes().Create(s.ctx, s.newVolume(handle, policy, change...), metav1.CreateOptions{})
	s.must(err, "create volume")
	return volume
}

func (s *scene) deleteClaim(name string) {
	s.t.Helper()
	s.must(s.client.CoreV1().PersistentVolumeClaims(s.namespace).Delete(s.ctx, name, metav1.DeleteOptions{}), "delete claim")
}

func (s *scene) deleteVolume(name string) {
	s.t.Helper()
	s.must(s.client.CoreV1().PersistentVolumes().Delete(s.ctx, name, metav1.DeleteOptions{}), "delete volume")
}

func (s *scene) setPolicy(volume string, policy v1.PersistentVolumeReclaimPolicy) {
	s.t.Helper()
	body := fmt.Appendf(nil, `{"spec":{"persistentVolumeReclaimPolicy":%q}}`, policy)
	_, err := s.client.CoreV1().PersistentVolumes().Patch(s.ctx, volume, types.MergePatchType, body, metav1.PatchOptions{})
	s.must(err, "change reclaim policy")
}

// named is one object of the core API.
type named struct{ resource, namespace, name string }

// await watches one object of the kind until the condition holds; what completes
// the sentence "waiting until NAME ...".
func await[T runtime.Object](s *scene, kind T, which named, what string, holds func(object T, exists bool) bool) T {
	s.t.Helper()
	var last T
	met := func(object runtime.Object, exists bool) (bool, error) {
		last, _ = object.(T)
		return holds(last, exists), nil
	}
	precondition := func(store cache.Store) (bool, error) {
		for _, object := range store.List() {
			return met(object.(runtime.Object), true)
		}
		return met(nil, false)
	}
	source := cache.NewListWatchFromClient(s.client.CoreV1().RESTClient(), which.resource, which.namespace, fields.OneTermEqualSelector("metadata.name", which.name))
	_, err := watchtools.UntilWithSync(s.ctx, source, kind, precondition, func(event watch.Event) (bool, error) {
		return met(event.Object, event.Type != watch.Deleted)
	})
	if err != nil {
		s.t.Fatalf("waiting until %s %s: %v; last seen: %+v", which.name, what, err, last)
	}
	return last
}

func (s *scene) awaitVolume(name, what string, holds func(*v1.PersistentVolume) bool) *v1.PersistentVolume {
	s.t.Helper()
	return await(s, &v1.PersistentVolume{}, named{"persistentvolumes", "", name}, what, func(v *v1.PersistentVolume, exists bool) bool { return exists && holds(v) })
}

func (s *scene) awaitVolumeGone(name string) {
	s.t.Helper()
	await(s, &v1.PersistentVolume{}, named{"persistentvolumes", "", name}, "is gone", func(_ *v1.PersistentVolume, exists bool) bool { return !exists })
}

func (s *scene) awaitClaim(name, what string, holds func(*v1.PersistentVolumeClaim) bool) *v1.PersistentVolumeClaim {
	s.t.Helper()
	return await(s, &v1.PersistentVolumeClaim{}, named{"persistentvolumeclaims", s.namespace, name}, what, func(c *v1.PersistentVolumeClaim, exists bool) bool { return exists && holds(c) })
}

func (s *scene) awaitClaimGone(name string) {
	s.t.Helper()
	await(s, &v1.PersistentVolumeClaim{}, named{"persistentvolumeclaims", s.namespace, name}, "is gone", func(_ *v1.PersistentVolumeClaim, exists bool) bool { return !exists })
}

// awaitBound returns the volume that the claim is bound to, once both say so.
func (s *scene) awaitBound(claim string) *v1.PersistentVolume {
	s.t.Helper()
	bound := s.awaitClaim(claim, "is bound", func(c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimBound })
	return s.awaitVolume(bound.Spec.VolumeName, "is bound", func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeBound })
}

// awaitEvent waits for an event about an object of the test's namespace, or of
// none, and returns its message.
func (s *scene) awaitEvent(object metav1.Object, reason string) string {
	s.t.Helper()
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	selector := fields.AndSelectors(fields.OneTermEqualSelector("involvedObject.name", object.GetName()), fields.OneTermEqualSelector("reason", reason))
	source := cache.NewListWatchFromClient(s.client.CoreV1().RESTClient(), "events", namespace, selector)
	event, err := watchtools.UntilWithSync(s.ctx, source, &v1.Event{}, nil, func(e watch.Event) (bool, error) { return e.Type != watch.Deleted, nil })
	if err != nil {
		s.t.Fatalf("waiting for event %s about %s: %v", reason, object.GetName(), err)
	}
	return event.Object.(*v1.Event).Message
}

// storage calls the driver itself.
func (s *scene) storage() spec.ControllerClient {
	s.t.Helper()
	connection, err := grpc.NewClient("unix://"+s.driver.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	s.must(err, "connect to the driver")
	s.t.Cleanup(func() { _ = connection.Close() })
	return spec.NewControllerClient(connection)
}

// makeVolume makes a volume in the storage system, as an administrator does
// before he writes a static PersistentVolume, and returns its handle.
func (s *scene) makeVolume(name string) string {
	s.t.Helper()
	made, err := s.storage().CreateVolume(s.ctx, &spec.CreateVolumeRequest{
		Name:          s.namespace + "-" + name,
		CapacityRange: &spec.CapacityRange{RequiredBytes: 1 << 20},
		VolumeCapabilities: []*spec.VolumeCapability{{
			AccessType: &spec.VolumeCapability_Mount{Mount: &spec.VolumeCapability_MountVolume{}},
			AccessMode: &spec.VolumeCapability_AccessMode{Mode: spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}},
	})
	s.must(err, "make volume in the storage system")
	return made.GetVolume().GetVolumeId()
}

// stored says whether the storage system still has the volume.
func (s *scene) stored(handle string) bool {
	s.t.Helper()
	page := ""
	for {
		list, err := s.storage().ListVolumes(s.ctx, &spec.ListVolumesRequest{StartingToken: page})
		s.must(err, "list volumes of the storage system")
		for _, entry := range list.GetEntries() {
			if entry.GetVolume().GetVolumeId() == handle {
				return true
			}
		}
		if page = list.GetNextToken(); page == "" {
			return false
		}
	}
}

// calls counts the calls of the method for the volume.
func (s *scene) calls(method, handle string) int {
	s.t.Helper()
	all, err := csimock.ReadCalls(s.driver.CallLog)
	s.must(err, "read call log")
	count := 0
	for _, call := range all {
		if call.Method == method && call.Volume == handle {
			count++
		}
	}
	return count
}

// handle is the volume's name in the storage system.
func handle(volume *v1.PersistentVolume) string { return volume.Spec.CSI.VolumeHandle }
