package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// IsAvailable reports whether the phase is Available.
func IsAvailable(volume *v1.PersistentVolume) bool { return volume.Status.Phase == v1.VolumeAvailable }

// Until waits until the condition holds.
func (s *Session) Until(what string, holds func() bool) {
	s.T.Helper()
	err := wait.PollUntilContextCancel(s.Ctx, 20*time.Millisecond, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		s.T.Fatalf("waiting until %s: %v; the logs are in %s", what, err, s.Dir)
	}
}

// Session is one test's use of a cluster: a namespace of its own, a deadline, and
// helpers that end the test on errors.
type Session struct {
	*Cluster
	T         testing.TB
	Ctx       context.Context
	Namespace string
}

// Option changes the settings of a session.
type Option func(*options)

type options struct{ timeout time.Duration }

// Within sets how long the test may take, which is Timeout by default.
func Within(timeout time.Duration) Option { return func(o *options) { o.timeout = timeout } }

// NewSession creates a namespace in the cluster for the test.
func NewSession(t testing.TB, c *Cluster, change ...Option) *Session {
	t.Helper()
	o := options{timeout: Timeout}
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithTimeout(t.Context(), o.timeout)
	t.Cleanup(cancel)
	s := &Session{Cluster: c, T: t, Ctx: ctx}
	namespace, err := c.Client.CoreV1().Namespaces().Create(ctx,
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{})
	s.Must(err, "create namespace")
	s.Namespace = namespace.Name
	return s
}

// Must ends the test if err is not nil; what names the step.
func (s *Session) Must(err error, what string) {
	s.T.Helper()
	if err != nil {
		s.T.Fatalf("%s: %v", what, err)
	}
}

// NewClaim returns a claim for 1Mi of the class, with the changes.
func (s *Session) NewClaim(name, class string, change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
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

// CreateClaim creates the claim of [Session.NewClaim].
func (s *Session) CreateClaim(name, class string, change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	s.T.Helper()
	claim, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).
		Create(s.Ctx, s.NewClaim(name, class, change...), metav1.CreateOptions{})
	s.Must(err, "create claim")
	return claim
}

// NewVolume returns a static volume of 1Mi with the handle, with the changes. Its class
// has the name of the test's namespace, so that claims of other tests do not bind to it.
func (s *Session) NewVolume(handle string, policy v1.PersistentVolumeReclaimPolicy,
	change ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-" + strings.ToLower(handle)},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: policy,
			StorageClassName:              s.Namespace,
			AccessModes:                   []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Capacity:                      v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")},
			PersistentVolumeSource:        v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: s.Driver.DriverName, VolumeHandle: handle}},
		},
	}
	for _, f := range change {
		f(volume)
	}
	return volume
}

// CreateVolume creates the volume of [Session.NewVolume].
func (s *Session) CreateVolume(handle string, policy v1.PersistentVolumeReclaimPolicy,
	change ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	s.T.Helper()
	volume, err := s.Client.CoreV1().PersistentVolumes().Create(s.Ctx, s.NewVolume(handle, policy, change...),
		metav1.CreateOptions{})
	s.Must(err, "create volume")
	return volume
}

// DeleteClaim deletes a claim of the test.
func (s *Session) DeleteClaim(name string) {
	s.T.Helper()
	s.Must(s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Delete(s.Ctx, name, metav1.DeleteOptions{}),
		"delete claim")
}

// DeleteVolume deletes a PersistentVolume.
func (s *Session) DeleteVolume(name string) {
	s.T.Helper()
	s.Must(s.Client.CoreV1().PersistentVolumes().Delete(s.Ctx, name, metav1.DeleteOptions{}), "delete volume")
}

// SetPolicy sets the reclaim policy of a volume and returns the result of the write.
func (s *Session) SetPolicy(volume string, policy v1.PersistentVolumeReclaimPolicy) *v1.PersistentVolume {
	s.T.Helper()
	body := fmt.Appendf(nil, `{"spec":{"persistentVolumeReclaimPolicy":%q}}`, policy)
	written, err := s.Client.CoreV1().PersistentVolumes().Patch(s.Ctx, volume, types.MergePatchType, body,
		metav1.PatchOptions{})
	s.Must(err, "change reclaim policy")
	return written
}

// ObjectName identifies an object of the core API.
type ObjectName struct{ Resource, Namespace, Name string }

// Await watches one object until the condition holds; what completes the sentence
// "waiting until NAME ...".
func Await[T runtime.Object](s *Session, kind T, which ObjectName, what string,
	holds func(object T, exists bool) bool) T {
	s.T.Helper()
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
	source := cache.NewListWatchFromClient(s.Client.CoreV1().RESTClient(), which.Resource, which.Namespace,
		fields.OneTermEqualSelector("metadata.name", which.Name))
	_, err := watchtools.UntilWithSync(s.Ctx, source, kind, precondition, func(event watch.Event) (bool, error) {
		return met(event.Object, event.Type != watch.Deleted)
	})
	if err != nil {
		s.T.Fatalf("waiting until %s %s: %v; last seen: %+v", which.Name, what, err, last)
	}
	return last
}

// AwaitVolume waits until the volume exists and the condition holds; what completes the
// sentence "waiting until NAME ...".
func (s *Session) AwaitVolume(name, what string, holds func(*v1.PersistentVolume) bool) *v1.PersistentVolume {
	s.T.Helper()
	return Await(s, &v1.PersistentVolume{}, ObjectName{"persistentvolumes", "", name}, what,
		func(v *v1.PersistentVolume, exists bool) bool { return exists && holds(v) })
}

// AwaitVolumeGone waits until the PersistentVolume no longer exists.
func (s *Session) AwaitVolumeGone(name string) {
	s.T.Helper()
	Await(s, &v1.PersistentVolume{}, ObjectName{"persistentvolumes", "", name}, "is gone",
		func(_ *v1.PersistentVolume, exists bool) bool { return !exists })
}

// AwaitClaim waits until the claim exists and the condition holds.
func (s *Session) AwaitClaim(name, what string, holds func(*v1.PersistentVolumeClaim) bool) *v1.PersistentVolumeClaim {
	s.T.Helper()
	return Await(s, &v1.PersistentVolumeClaim{}, ObjectName{"persistentvolumeclaims", s.Namespace, name}, what,
		func(c *v1.PersistentVolumeClaim, exists bool) bool { return exists && holds(c) })
}

// AwaitClaimGone waits until the claim no longer exists.
func (s *Session) AwaitClaimGone(name string) {
	s.T.Helper()
	Await(s, &v1.PersistentVolumeClaim{}, ObjectName{"persistentvolumeclaims", s.Namespace, name}, "is gone",
		func(_ *v1.PersistentVolumeClaim, exists bool) bool { return !exists })
}

// AwaitBound waits until claim and volume are Bound, and returns the volume.
func (s *Session) AwaitBound(claim string) *v1.PersistentVolume {
	s.T.Helper()
	bound := s.AwaitClaim(claim, "is bound",
		func(c *v1.PersistentVolumeClaim) bool { return c.Status.Phase == v1.ClaimBound })
	return s.AwaitVolume(bound.Spec.VolumeName, "is bound",
		func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeBound })
}

// IsReleased reports whether the phase is Released.
func IsReleased(volume *v1.PersistentVolume) bool { return volume.Status.Phase == v1.VolumeReleased }

// Requests returns the requests of our programs so far, without watches.
func (s *Session) Requests() []sandbox.Event {
	s.T.Helper()
	events, err := sandbox.ReadAudit(s.Plane.AuditLog)
	s.Must(err, "read audit log")
	return slices.DeleteFunc(events, func(e sandbox.Event) bool {
		return !strings.HasPrefix(e.User, "system:serviceaccount:"+deploy.Namespace) || e.Verb == "watch"
	})
}

// CountRequests counts the requests of our programs for which such is true.
func (s *Session) CountRequests(such func(sandbox.Event) bool) int {
	s.T.Helper()
	count := 0
	for _, event := range s.Requests() {
		if such(event) {
			count++
		}
	}
	return count
}

// WithSelectedNode sets the selected node of a claim, as the scheduler does.
func WithSelectedNode(node string) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{storage.AnnSelectedNode: node}
	}
}

// CreateNode creates a node that runs the driver; the labels are its topology segment.
func (s *Session) CreateNode(name string, labels map[string]string) {
	s.T.Helper()
	_, err := s.Client.CoreV1().Nodes().Create(s.Ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}},
		metav1.CreateOptions{})
	s.Must(err, "create node")
	var keys []string
	for key := range labels {
		keys = append(keys, key)
	}
	_, err = s.Client.StorageV1().CSINodes().Create(s.Ctx, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: s.Driver.DriverName, NodeID: name,
			TopologyKeys: keys}}},
	}, metav1.CreateOptions{})
	s.Must(err, "create CSI node")
}

// CreatePod creates a scheduled pod that uses the claim.
func (s *Session) CreatePod(claim string) *v1.Pod {
	s.T.Helper()
	pod, err := s.Client.CoreV1().Pods(s.Namespace).Create(s.Ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"},
		Spec: v1.PodSpec{
			NodeName:   "node",
			Containers: []v1.Container{{Name: "main", Image: "image"}},
			Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
				PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}}},
		},
	}, metav1.CreateOptions{})
	s.Must(err, "create pod")
	return pod
}

// Annotate sets an annotation of the claim.
func (s *Session) Annotate(claim *v1.PersistentVolumeClaim, key, value string) {
	s.T.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	s.Must(err, "encode annotation")
	_, err = s.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).
		Patch(s.Ctx, claim.Name, types.MergePatchType, body, metav1.PatchOptions{})
	s.Must(err, "annotate claim")
}
