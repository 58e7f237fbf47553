package provisioning

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// etcd is restored from a backup of the time when the claim waited for its first pod. The claim waits again, its
// PersistentVolume is gone, and its disk has the data of the pods that have run since.
func TestDiskOfRestoredClaimIsNotDiscarded(t *testing.T) {
	in := func(zone string) []*spec.Topology {
		return []*spec.Topology{{Segments: map[string]string{"zone": zone}}}
	}
	for name, tc := range map[string]struct {
		found    *spec.Volume
		created  bool // the creation of the claim was seen: no disk can be older than the request
		recorded int
		deleted  int
		event    string
	}{
		"in another zone":              {&spec.Volume{VolumeId: "disk", CapacityBytes: 1 << 30, AccessibleTopology: in("first")}, false, 1, 0, "ProvisioningSucceeded"},
		"in another zone, new":         {&spec.Volume{VolumeId: "disk", CapacityBytes: 1 << 30, AccessibleTopology: in("first")}, true, 0, 1, "not reachable"},
		"smaller than requested":       {&spec.Volume{VolumeId: "disk", CapacityBytes: 1, AccessibleTopology: in("second")}, false, 0, 0, `the volume with the handle "disk" may be older than this request and hold data`},
		"smaller than requested, new":  {&spec.Volume{VolumeId: "disk", CapacityBytes: 1, AccessibleTopology: in("second")}, true, 0, 1, "less than requested"},
		"topology that is no label":    {&spec.Volume{VolumeId: "disk", CapacityBytes: 1 << 30, AccessibleTopology: in("?")}, false, 0, 0, "is left alone"},
		"where and what was requested": {&spec.Volume{VolumeId: "disk", CapacityBytes: 1 << 30, AccessibleTopology: in("second")}, false, 1, 0, "ProvisioningSucceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			driver, events := &zonal{found: tc.found}, record.NewFakeRecorder(10)
			c := newZonalController(t, driver)
			c.Reporter = controller.NewReporter(events)
			c.Nodes = liveNodes(func(context.Context, string) (*v1.Node, error) { return newNode("node", "second"), nil })
			claim, _ := c.claimOf("ns/claim/uid")
			if err := requestSize(t.Context(), c, claim, "1Mi"); err != nil {
				t.Fatal(err)
			}
			if tc.created {
				c.Creations = sawCreated(claim)
			}
			_ = c.Reconcile(t.Context(), "ns/claim/uid")
			volumes, err := c.Client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			discarded, _ := c.Deletion.(*discarding)
			if len(volumes.Items) != tc.recorded || discarded.deleted != tc.deleted {
				t.Errorf("%d volumes recorded, %d deleted; want %d, %d", len(volumes.Items), discarded.deleted, tc.recorded, tc.deleted)
			}
			if told := textOf(events); !strings.Contains(told, tc.event) {
				t.Errorf("events:\n%swant %q", told, tc.event)
			}
		})
	}
}

// requestSize changes the requested size of the claim, in the API server and in the cache.
func requestSize(ctx context.Context, c *Controller, claim *v1.PersistentVolumeClaim, size string) error {
	sized := claim.DeepCopy()
	sized.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)}
	_, err := c.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, sized, metav1.UpdateOptions{})
	return errors.Join(err, c.Claims.GetStore().Update(sized))
}

// textOf returns all events, and ends their recording.
func textOf(events *record.FakeRecorder) string {
	close(events.Events)
	var text strings.Builder
	for event := range events.Events {
		text.WriteString(event + "\n")
	}
	return text.String()
}

// A process that has recorded a volume for the claim does not take a later one for new.
func TestVolumeAfterRecordedOneIsNotNew(t *testing.T) {
	f := newFlow(t)
	o := &observation{claim: f.syncClaim(), name: "pvc-uid"}
	if !f.isMade(o) {
		t.Error("the volume of a claim whose creation was seen counts as older")
	}
	for name, change := range map[string]func(*claimRecord){
		"recorded": func(r *claimRecord) { r.object.recorded = true }, "inherited": func(r *claimRecord) { r.claim.inherited = true },
	} {
		if change(&o.record); f.isMade(o) {
			t.Errorf("%s: the volume counts as new", name)
		}
		o.record = claimRecord{}
	}
}

// The policy is Delete, and the finalizer is gone: a mutating webhook removed it, or the user did, to keep the disk. The
// process ended before it removed the entry, and the user removes both objects.
func TestVolumeKeptByHandIsNotRecordedAgain(t *testing.T) {
	for _, by := range []string{"a webhook", "the user"} {
		t.Run(by, func(t *testing.T) {
			f := newFlow(t)
			recorded := false
			f.react("create", "persistentvolumes", func(action clienttesting.Action) (bool, runtime.Object, error) {
				volume := action.(clienttesting.CreateAction).GetObject().(*v1.PersistentVolume).DeepCopy()
				if recorded = true; by == "a webhook" {
					volume.Finalizers = nil
				}
				return true, volume, f.client.Tracker().Create(action.GetResource(), volume, "")
			})
			f.react("update", "leases",
				func(action clienttesting.Action) (bool, runtime.Object, error) { // the process ends: its writes do not arrive
					written := action.(clienttesting.UpdateAction).GetObject().(*coordinationv1.Lease)
					return recorded && strings.Contains(written.Annotations[journal.CustodyAnnotation], `"transitions":1`), nil,
						context.DeadlineExceeded
				})
			f.reconcile(false)
			f.must(f.client.CoreV1().PersistentVolumes().Delete(t.Context(), "pvc-uid", metav1.DeleteOptions{}))
			f.deleteClaim()
			f.terms++
			f.restart()
			f.reconcileDeleted(false)
			f.expect(1, 0, 1, 0)
			if left := f.entries(journal.KindUnresolved); len(left) != 1 || left[0].Unresolved.Reason != mayBeKept {
				t.Errorf("unresolved entries: %+v", left)
			}
		})
	}
}

// The driver has no rights in the storage system, is throttled, or does not serve the call: it cannot know whether an
// earlier call has created the volume.
func TestDriverThatCannotLookProvesNothing(t *testing.T) {
	for _, code := range []codes.Code{codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented,
		codes.ResourceExhausted} {
		t.Run(code.String(), func(t *testing.T) {
			f := newFlow(t)
			f.injectFault(codes.DeadlineExceeded, true, 1)
			f.reconcile(true)
			f.deleteClaim()
			f.Timeouts.RepeatedFailure = time.Nanosecond
			f.injectFault(code, false, 4)
			for range 4 {
				f.reconcileDeleted(true)
			}
			f.expect(1, 0, 5, 1)
			f.Timeouts.Unresolved = 0
			f.reconcileDeleted(false)
			if left := f.entries(journal.KindUnresolved); len(left) != 1 ||
				!strings.Contains(left[0].Unresolved.Reason, code.String()) {
				t.Errorf("unresolved entries: %+v", left)
			}
		})
	}
}

// The first call of the node gets no answer, and then its storage is full: the scheduler selects another node, and the
// entry of the open call stays.
func TestFullNodeWithOpenCallIsGivenUp(t *testing.T) {
	client := nodeClient("mine", false)
	c := newNodeController(t, client, &local{}, "mine")
	c.Timeouts.RepeatedFailure = 0
	claim, _ := c.claimOf("ns/claim/uid")
	o := &observation{claim: claim, name: "pvc-uid"}
	for name, tc := range map[string]struct {
		record claimRecord
		want   bool
	}{
		"full, call open for long": {claimRecord{claim: claimFacts{node: "mine", unfit: "mine"},
			request: requestFacts{creation: provision.Requested}, entry: entryFacts{state: provision.Durable}}, true},
		"selected node changed meanwhile": {claimRecord{claim: claimFacts{node: "yours"},
			request: requestFacts{creation: provision.Requested}, entry: entryFacts{state: provision.Durable}}, false},
		"another node was full, this gone": {claimRecord{claim: claimFacts{node: "yours", unfit: "yours"},
			request: requestFacts{creation: provision.Requested}, entry: entryFacts{state: provision.Durable}}, false},
	} {
		c.updateRecord(o, func(r *claimRecord) { *r = tc.record })
		if state := c.stateOf(o); state.Want != provision.Misplaced || state.LongRequested != tc.want {
			t.Errorf("%s: %+v, want the claim rescheduled: %t", name, state, tc.want)
		}
	}
}

// An admission webhook stores another handle or claimRef than was written.
func TestAnswerToTheWriteOfTheVolumeIsChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1.PersistentVolume)
		event  string
	}{
		"another handle":   {func(v *v1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "other" }, "is left alone"},
		"another claimRef": {func(v *v1.PersistentVolume) { v.Spec.ClaimRef.UID = "other" }, "is left alone"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			f.react("create", "persistentvolumes", func(action clienttesting.Action) (bool, runtime.Object, error) {
				volume := action.(clienttesting.CreateAction).GetObject().(*v1.PersistentVolume).DeepCopy()
				tc.change(volume)
				return true, volume, f.client.Tracker().Create(action.GetResource(), volume, "")
			})
			f.syncClaim()
			_ = f.Reconcile(t.Context(), flowClaim)
			f.expect(1, 1, 1, 0)
			if events := f.takeEvents(); !strings.Contains(events, tc.event) {
				t.Errorf("events:\n%s", events)
			}
		})
	}
}

// An admission webhook denies the write that removes the selected node, with the 404 or 409 of another object, or undoes it.
func TestDeniedRescheduleIsReportedAndRepeated(t *testing.T) {
	claims := v1.Resource("persistentvolumeclaims")
	for name, denial := range map[string]error{
		"404": apierrors.NewNotFound(claims, "claim"), "409": apierrors.NewConflict(claims, "claim", errors.New("frozen")),
		"undone": nil,
	} {
		t.Run(name, func(t *testing.T) {
			c, events := newZonalController(t, &zonal{}), record.NewFakeRecorder(10)
			c.Reporter = controller.NewReporter(events)
			c.Nodes = liveNodes(func(_ context.Context, name string) (*v1.Node, error) {
				return nil, apierrors.NewNotFound(v1.Resource("nodes"), name)
			})
			client, _ := c.Client.(*fake.Clientset)
			client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				stored, err := client.Tracker().Get(v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), "ns", "claim")
				return true, stored, errors.Join(err, denial)
			})
			if err := c.Reconcile(t.Context(), "ns/claim/uid"); err == nil {
				t.Error("no error, so that nobody tries again")
			}
			if told := textOf(events); !strings.Contains(told, "patch claim ns/claim") {
				t.Errorf("no event names the refused write:\n%s", told)
			}
		})
	}
}
