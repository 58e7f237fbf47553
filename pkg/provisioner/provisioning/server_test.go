package provisioning

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// discarding is a Deletion without recorded volumes that counts the discarded ones.
type discarding struct{ deleted int }

func (*discarding) VolumesOnDisk(*v1.PersistentVolume) []string { return nil }

func (*discarding) VolumesDeletedWith(*v1.PersistentVolume) []string { return nil }

func (*discarding) HandleOf(volume *v1.PersistentVolume) string {
	if volume.Spec.CSI == nil {
		return ""
	}
	return volume.Spec.CSI.VolumeHandle
}

func (d *discarding) SameDisk(a, b *v1.PersistentVolume) bool {
	return d.HandleOf(a) != "" && d.HandleOf(a) == d.HandleOf(b)
}

// DeletedWith has a disk whose handle begins with that of the volume inside it.
func (d *discarding) DeletedWith(volume, other *v1.PersistentVolume) bool {
	return d.SameDisk(volume, other) || d.HandleOf(volume) != "" &&
		strings.HasPrefix(d.HandleOf(other), d.HandleOf(volume)+"/")
}

func (d *discarding) PrepareDiscard(context.Context, *v1.PersistentVolume, string) (backend.DeleteCall, error) {
	return func(context.Context) error {
		d.deleted++
		return nil
	}, nil
}

func TestProvisionerOfSelectedNodeServesClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		node           string
		deleting       bool
		calls, volumes int
	}{
		"this node":              {node: "mine", calls: 1, volumes: 1},
		"other node":             {node: "yours"},
		"no node":                {},
		"deleted without a call": {deleting: true},
	} {
		t.Run(name, func(t *testing.T) {
			client, driver := nodeClient(tc.node, tc.deleting), &local{}
			c := newNodeController(t, client, driver, "mine")
			if err := c.Reconcile(t.Context(), "ns/claim/uid"); err != nil {
				t.Fatal(err)
			}
			volumes, err := client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
			if err != nil || len(volumes.Items) != tc.volumes {
				t.Errorf("%d volumes recorded, want %d; %v", len(volumes.Items), tc.volumes, err)
			}
		})
	}
}

func TestDeletedClaimLeadsToNoCall(t *testing.T) {
	client, driver := nodeClient("", true), &local{}
	for i := range 20 {
		if err := newNodeController(t, client, driver, fmt.Sprint("node-", i)).
			Reconcile(t.Context(), "ns/claim/uid"); err != nil {
			t.Fatal(err)
		}
	}
	if driver.made > 0 {
		t.Errorf("CreateVolume was called %d times", driver.made)
	}
}

// nodeClient returns a fake API with one claim.
func nodeClient(node string, deleting bool) *fake.Clientset {
	class, immediate := "class", storagev1.VolumeBindingImmediate
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "uid", ResourceVersion: "1",
			Finalizers:  []string{"example.com/other"},
			Annotations: map[string]string{storage.AnnStorageProvisioner: "ours", storage.AnnSelectedNode: node}},
		Spec: v1.PersistentVolumeClaimSpec{StorageClassName: &class,
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}},
	}
	if deleting {
		claim.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	policy := v1.PersistentVolumeReclaimDelete
	return versioned(fake.NewClientset(claim, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class},
		Provisioner: "ours", VolumeBindingMode: &immediate, ReclaimPolicy: &policy}))
}

// newNodeController returns the controller of a node after cache sync and Start.
func newNodeController(t *testing.T, client *fake.Clientset, driver csibackend.Driver, node string) *Controller {
	t.Helper()
	factory := informers.NewSharedInformerFactory(client, 0)
	c, err := New(Config{
		Client: client, Caches: cachesOf(factory),
		Backend: newBackend(csibackend.InputsConfig{Client: client, Driver: driver, Translator: plugin{}}), Honor: true,
		Deletion: &discarding{}, Scope: testScope{provisioners: []string{"ours"}, node: node},
		Nodes: liveNodes(func(_ context.Context, name string) (*v1.Node, error) {
			return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
		}),
		Locks: &controller.KeyLocks{}, Reporter: controller.NewReporter(record.NewFakeRecorder(100)),
		Metrics: metrics.New("test"),
		Backoff: controller.Backoff{Initial: time.Millisecond, Max: time.Second},
		Journal: newTestStore(t, client, node), Journaled: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
	if err := errors.Join(c.Watch(t.Context()), c.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	return c
}

// The claim goes to another node after this one was full. Without a journal nothing but memory tells of the call here.
func TestNodeLeavesClaimOfAnotherNodeAlone(t *testing.T) {
	client, driver := nodeClient("mine", false), &local{}
	c := newNodeController(t, client, driver, "mine")
	c.journaled.Store(false)
	driver.full = true
	_ = c.Reconcile(t.Context(), "ns/claim/uid")
	made := driver.made
	claim, err := client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "claim", metav1.GetOptions{})
	if err != nil || made == 0 {
		t.Fatalf("%d calls: %v", made, err)
	}
	claim.Annotations[storage.AnnSelectedNode] = "yours"
	if claim, err = client.CoreV1().PersistentVolumeClaims("ns").
		Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Claims.GetStore().Update(claim); err != nil {
		t.Fatal(err)
	}
	_ = c.Reconcile(t.Context(), "ns/claim/uid")
	if driver.made != made {
		t.Errorf("CreateVolume was called for the claim of another node, %d times", driver.made-made)
	}
}

// unanswered is a driver whose CreateVolume gets no answer.
type unanswered struct{ local }

func (*unanswered) CreateVolume(context.Context, *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	return nil, status.Error(codes.DeadlineExceeded, "no answer")
}

// An administrator has the scheduler select another node while this one does not answer. Only the entry knows the disk here.
func TestVolumeOfAnotherNodeDoesNotEndTheEntry(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		client := nodeClient("mine", false)
		start := func() *Controller {
			c := newNodeController(t, client, &unanswered{}, "mine")
			c.Scope = testScope{provisioners: []string{"ours"}, node: "mine", reaches: func(volume *v1.PersistentVolume) bool {
				return volume.Spec.NodeAffinity == nil
			}}
			return c
		}
		c := start()
		if err := c.Reconcile(t.Context(), "ns/claim/uid"); err == nil {
			t.Fatal("the call was answered")
		}
		theirs := &v1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid", UID: "theirs", ResourceVersion: "1"},
			Spec: v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "claim", UID: "uid"},
				NodeAffinity: &v1.VolumeNodeAffinity{}},
		}
		if _, err := client.CoreV1().PersistentVolumes().Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if restarted {
			c = start()
		}
		if err := errors.Join(c.Volumes.GetStore().Add(theirs), c.Reconcile(t.Context(), "ns/claim/uid")); err != nil {
			t.Fatal(err)
		}
		if left := c.Journal.Unresolved(); len(left) != 1 || left[0].Unresolved.Reason != elsewhere {
			t.Errorf("restarted: %v, unresolved entries %+v", restarted, left)
		}
	}
}
