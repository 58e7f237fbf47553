package provisioning

import (
	"context"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr/funcr"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

const echoed = `pass"word&1`

// echo is a driver that returns the secret in the handle, and optionally in the topology. It
// is also a Deletion whose VolumesOnDisk finds another volume as the test wants.
type echo struct {
	local
	discarding
	inTopology bool
	known      func(calls int) bool
	calls      int
	recorded   *v1.PersistentVolume
}

func (e *echo) HasTopology() bool { return e.inTopology }

func (e *echo) CreateVolume(_ context.Context, request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	password := request.GetSecrets()["password"]
	made := &spec.Volume{VolumeId: "of " + password, CapacityBytes: 1, VolumeContext: map[string]string{"user": password}}
	if e.inTopology {
		made.AccessibleTopology = []*spec.Topology{{Segments: map[string]string{"zone": password}}}
	}
	return &spec.CreateVolumeResponse{Volume: made}, nil
}

func (e *echo) VolumesOnDisk(*v1.PersistentVolume) []string {
	e.calls++
	if e.known(e.calls) {
		return []string{"known"}
	}
	return nil
}

func (e *echo) VolumesDeletedWith(volume *v1.PersistentVolume) []string {
	return e.VolumesOnDisk(volume)
}

func (e *echo) PrepareDiscard(_ context.Context, volume *v1.PersistentVolume, _ string) (backend.DeleteCall, error) {
	return func(context.Context) error {
		e.recorded = volume
		return nil
	}, nil
}

func TestRepeatedSecretIsHiddenInLogsAndEvents(t *testing.T) {
	never := func(int) bool { return false }
	for name, tc := range map[string]struct {
		inTopology, unwanted bool
		known                func(calls int) bool
		want                 string
	}{
		"handle of another volume":            {false, false, func(int) bool { return true }, "which another volume has"},
		"invalid topology value":              {true, false, never, "zone"},
		"volume recorded before the deletion": {false, true, func(calls int) bool { return calls > 1 }, "left alone"},
		"unused volume deleted":               {false, true, never, "Unused volume deleted"},
		"volume recorded for its claim":       {false, false, never, "Volume created"},
	} {
		t.Run(name, func(t *testing.T) {
			var output strings.Builder
			ctx := klog.NewContext(t.Context(), funcr.New(func(prefix, args string) { output.WriteString(prefix + args + "\n") }, funcr.Options{Verbosity: 4}))
			driver, events, client := &echo{inTopology: tc.inTopology, known: tc.known}, record.NewFakeRecorder(10), newEchoClient(tc.unwanted)
			c := newEcho(t, client, driver, events)
			if err := c.Volumes.GetStore().Replace(nil, ""); err != nil { // the cache is stale
				t.Fatal(err)
			}
			if err := c.Reconcile(ctx, "ns/claim/uid"); err != nil {
				output.WriteString(err.Error())
			}
			close(events.Events)
			for event := range events.Events {
				output.WriteString(event)
			}
			text := output.String()
			if strings.Contains(text, "word") || !strings.Contains(text, tc.want) || !strings.Contains(text, "***stripped***") {
				t.Errorf("output: %s, want %q without the secret", text, tc.want)
			}
			volumes, err := client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(volumes.Items) == 1 && volumes.Items[0].Spec.ClaimRef != nil {
				driver.recorded = &volumes.Items[0]
			}
			if made := driver.recorded; made != nil && (made.Spec.CSI.VolumeHandle != "of "+echoed || made.Spec.CSI.VolumeAttributes["user"] != echoed) {
				t.Errorf("the volume differs from the response: %+v", made.Spec.CSI)
			}
		})
	}
}

// newEchoClient returns a fake API with a claim whose class names a secret.
func newEchoClient(unwanted bool) *fake.Clientset {
	class, immediate, policy := "class", storagev1.VolumeBindingImmediate, v1.PersistentVolumeReclaimDelete
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "uid", ResourceVersion: "1",
			Finalizers:  []string{"example.com/other"},
			Annotations: map[string]string{storage.AnnStorageProvisioner: "ours"}},
		Spec: v1.PersistentVolumeClaimSpec{StorageClassName: &class,
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}},
	}
	objects := []runtime.Object{claim}
	if unwanted { // its name is taken
		objects = append(objects, &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"}})
	}
	return fake.NewClientset(append(objects,
		&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "ours",
			VolumeBindingMode: &immediate, ReclaimPolicy: &policy, Parameters: map[string]string{
				"csi.storage.k8s.io/provisioner-secret-name": "secret", "csi.storage.k8s.io/provisioner-secret-namespace": "ns",
			}},
		&v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "secret"},
			Data: map[string][]byte{"password": []byte(echoed)}})...)
}

func newEcho(t *testing.T, client *fake.Clientset, driver *echo, events record.EventRecorder) *Controller {
	t.Helper()
	factory := informers.NewSharedInformerFactory(client, 0)
	caches := cachesOf(factory)
	caches.Creations = sawCreated(&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: "uid"}})
	creations, err := New(Config{
		Client: client, Caches: caches,
		Backend: newBackend(csibackend.InputsConfig{Client: client, Driver: driver, Translator: plugin{}}), Honor: true,
		Deletion: driver, Scope: serves("ours"),
		Locks: &controller.KeyLocks{}, Reporter: controller.NewReporter(events), Metrics: metrics.New("echo"),
		Backoff: controller.Backoff{Initial: time.Millisecond, Max: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
	if err := creations.Watch(t.Context()); err != nil {
		t.Fatal(err)
	}
	return creations
}
