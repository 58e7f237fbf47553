package provisioning

import (
	"context"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// local is the driver of one node.
type local struct {
	able
	made int
}

func (*local) Name() string      { return "ours" }
func (*local) HasTopology() bool { return false }

func (l *local) CreateVolume(_ context.Context, request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	l.made++
	return &spec.CreateVolumeResponse{Volume: &spec.Volume{VolumeId: request.GetName(), CapacityBytes: 1 << 30}}, nil
}

// discarding is a volume side that knows of no volume and counts what it deletes.
type discarding struct{ deleted int }

func (*discarding) Naming(*v1.PersistentVolume) []string { return nil }

func (*discarding) HandleOf(volume *v1.PersistentVolume) string { return volume.Spec.CSI.VolumeHandle }

func (d *discarding) SameDisk(a, b *v1.PersistentVolume) bool { return d.HandleOf(a) == d.HandleOf(b) }

func (d *discarding) Discard(context.Context, *v1.PersistentVolume, string) error {
	d.deleted++
	return nil
}

// Where each node has a provisioner, a claim is served by that of its node, its hold
// and its end included: another driver cannot tell what was made there.
func TestAClaimIsServedByTheProvisionerOfItsNodeUntilItIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		node             string
		held, deleting   bool
		made, discarded  int
		holdOff, volumes bool
	}{
		"its own node":                                {node: "mine", made: 1, volumes: true},
		"another node":                                {node: "yours"},
		"no node yet":                                 {},
		"held by another node":                        {node: "yours", held: true},
		"held by another node, and deleted":           {node: "yours", held: true, deleting: true},
		"held by this node before a restart, deleted": {node: "mine", held: true, deleting: true, made: 1, discarded: 1, holdOff: true},
		"held, deleted, and given up by its node":     {held: true, deleting: true, made: 1, discarded: 1, holdOff: true},
	} {
		t.Run(name, func(t *testing.T) {
			class, immediate := "class", storagev1.VolumeBindingImmediate
			claim := &v1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "uid", ResourceVersion: "1", Finalizers: []string{"example.com/other"},
					Annotations: map[string]string{binding.StorageProvisioner: "ours", binding.SelectedNode: tc.node}},
				Spec: v1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}},
			}
			if tc.held {
				claim.Finalizers = append(claim.Finalizers, string(finalizer.Provisioning))
			}
			if tc.deleting {
				claim.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			policy := v1.PersistentVolumeReclaimDelete
			client := fake.NewClientset(claim, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "ours", VolumeBindingMode: &immediate, ReclaimPolicy: &policy})
			driver, deletion := &local{}, &discarding{}
			reconcileHere(t, client, driver, deletion)
			now, err := client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "claim", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if driver.made != tc.made || deletion.deleted != tc.discarded {
				t.Errorf("%d volumes made and %d deleted, want %d and %d", driver.made, deletion.deleted, tc.made, tc.discarded)
			}
			if off := tc.held && !finalizer.Has(now.Finalizers, finalizer.Provisioning); off != tc.holdOff {
				t.Errorf("the hold is off: %v, want %v", off, tc.holdOff)
			}
			volumes, err := client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
			if err != nil || (len(volumes.Items) == 1) != tc.volumes {
				t.Errorf("%d volumes recorded, %v", len(volumes.Items), err)
			}
		})
	}
}

// reconcileHere has the provisioner of the node "mine" look at the claim, until it
// has nothing left to do.
func reconcileHere(t *testing.T, client *fake.Clientset, driver *local, deletion *discarding) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(client, 0)
	core := factory.Core().V1()
	creations, err := New(Config{
		Client: client, Claims: core.PersistentVolumeClaims().Informer(), Volumes: core.PersistentVolumes().Informer(), Classes: factory.Storage().V1().StorageClasses().Informer(),
		Provisioner: &Provisioner{Driver: driver, Inputs: NewInputs(InputsConfig{Client: client, Driver: driver, Translator: plugin{}}), Honor: true},
		Deletion:    deletion, Serves: func(name string) bool { return name == "ours" },
		ServedBy: func(claim *v1.PersistentVolumeClaim) provision.Server {
			return provision.ServerOf(claim.Annotations[binding.SelectedNode], "mine")
		},
		Node: func(_ context.Context, name string) (*v1.Node, error) {
			return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
		},
		VolumeName: func(claim *v1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) },
		Turns:      &controller.Turns{}, Reporter: controller.NewReporter(record.NewFakeRecorder(100)), Metrics: metrics.New("test"),
		Backoff: controller.Backoff{First: time.Millisecond, Most: time.Second}, Holds: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
	if err := creations.Reconcile(t.Context(), "ns/claim/uid"); err != nil {
		t.Fatal(err)
	}
}
