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
	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// wrapped is the driver with a step before each CreateVolume call.
type wrapped struct {
	*csi.Driver
	spread bool
	before func()
}

func (w *wrapped) HasTopology() bool { return w.spread }

func (w *wrapped) CreateVolume(ctx context.Context,
	request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	if w.before != nil {
		w.before()
	}
	return w.Driver.CreateVolume(ctx, request)
}

// The PersistentVolume comes and goes during the call, and without an entry no event enqueues
// the claim.
func TestCallWithVolumeEventsIsRepeatedSoon(t *testing.T) {
	f := newFlow(t)
	f.journaled.Store(false)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	calls, recorded := 0, make(chan struct{})
	own := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"},
		Spec: v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{UID: "uid"}}}
	f.calls.before = func() {
		switch calls++; {
		case calls < 9: // more than the number of claim events
			f.volumeChanged(nil, own)
		case calls == 9:
			close(recorded)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		f.Controller.Run(ctx, 1)
		close(ended)
	}()
	select {
	case <-recorded:
	case <-time.After(10 * time.Second):
		t.Error("the request is not repeated")
	}
	stop()
	<-ended
}

func TestRescheduledClaimWaitsForScheduler(t *testing.T) {
	f := newFlow(t)
	f.calls.spread = true
	f.Nodes = liveNodes(func(_ context.Context, name string) (*v1.Node, error) {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
	})
	f.delayBinding()
	f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "full" })
	f.injectFault(codes.ResourceExhausted, false, 1)
	f.reconcile(false)
	f.expect(0, 0, 1, 0)
	if _, selected := f.syncClaim().Annotations[storage.AnnSelectedNode]; selected {
		t.Error("the node is still selected")
	}
}

// The scheduler selects one full node after the other.
func TestClaimLeavesEachFullNodeAtOnce(t *testing.T) {
	f := newFlow(t)
	f.calls.spread = true
	f.Nodes = liveNodes(func(_ context.Context, name string) (*v1.Node, error) {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
	})
	f.delayBinding()
	for i := range 10 {
		node := fmt.Sprint("full-", i)
		f.editClaim(func(claim *v1.PersistentVolumeClaim) {
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storage.AnnSelectedNode, node)
		})
		f.injectFault(codes.ResourceExhausted, false, 1)
		f.reconcile(false)
		if selected := f.syncClaim().Annotations[storage.AnnSelectedNode]; selected != "" {
			t.Fatalf("node %s is still selected; events:\n%s", selected, f.takeEvents())
		}
	}
}

// The node of a request goes away before the driver has said whether there is a volume.
func TestLongUnansweredRequestForAGoneNodeIsRescheduled(t *testing.T) {
	f := newFlow(t)
	f.calls.spread = true
	gone := false
	f.Nodes = liveNodes(func(_ context.Context, name string) (*v1.Node, error) {
		if gone && name == "first" {
			return nil, apierrors.NewNotFound(v1.Resource("nodes"), name)
		}
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
	})
	f.delayBinding()
	f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "first" })
	f.injectFault(codes.DeadlineExceeded, false, 1)
	f.reconcile(true)
	gone = true
	f.injectFault(codes.Internal, false, 2)
	f.reconcile(true)
	if f.syncClaim().Annotations[storage.AnnSelectedNode] == "" {
		t.Error("the claim is rescheduled at once")
	}
	f.Timeouts.RepeatedFailure = time.Nanosecond
	f.reconcile(true)
	if f.syncClaim().Annotations[storage.AnnSelectedNode] != "" {
		t.Error("the claim waits for the driver for ever")
	}
	if events := f.takeEvents(); !strings.Contains(events, `created volume pvc-uid for node "first"`) {
		t.Errorf("events: %s", events)
	}
	if open := f.entries(journal.KindActive); len(open) != 1 {
		t.Errorf("entries: %+v", open)
	}
	f.editClaim(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "second" })
	f.injectFault(codes.Internal, false, 1)
	f.reconcile(true)
	if open := f.entries(journal.KindActive); len(open) != 1 || open[0].Node != "second" {
		t.Errorf("entries: %+v", open)
	}
	if f.syncClaim().Annotations[storage.AnnSelectedNode] != "second" {
		t.Error("the choice of the scheduler is undone")
	}
}

func TestInfeasibleRequestWaitsWithoutJournal(t *testing.T) {
	f := newFlow(t)
	f.journaled.Store(false)
	f.injectFault(codes.InvalidArgument, false, 1)
	f.reconcile(false)
	f.expect(0, 0, 1, 0)
}

func TestChangedAttributesClassWakesClaim(t *testing.T) {
	f := newFlow(t)
	changed := f.syncClaim().DeepCopy()
	changed.Spec.VolumeAttributesClassName = ptr.To("fast")
	if !f.needsReconcile(f.syncClaim(), changed) {
		t.Error("the claim is not retried")
	}
}

// delayBinding sets the binding mode WaitForFirstConsumer in the class.
func (f *flow) delayBinding() {
	f.Helper()
	class, err := f.client.StorageV1().StorageClasses().Get(f.Context(), "class", metav1.GetOptions{})
	f.must(err)
	class = class.DeepCopy()
	class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	f.must(f.Classes.GetStore().Update(class))
}

// setClassParameter sets a parameter of the class.
func (f *flow) setClassParameter(key, value string) {
	f.Helper()
	class, err := f.client.StorageV1().StorageClasses().Get(f.Context(), "class", metav1.GetOptions{})
	f.must(err)
	class = class.DeepCopy()
	class.Parameters = map[string]string{key: value}
	f.must(f.Classes.GetStore().Update(class))
}

// The class of a claim changes after the first call timed out.
func TestLongUnansweredRequestIsBuiltAgain(t *testing.T) {
	for name, code := range map[string]codes.Code{"timeouts": codes.DeadlineExceeded, "internal errors": codes.Internal,
		"missing pool": codes.NotFound} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			f.injectFault(codes.DeadlineExceeded, false, 1)
			f.reconcile(true)
			f.injectFault(code, false, 1)
			f.setClassParameter("pool", "changed")
			f.reconcile(true)
			if open := f.entries(journal.KindActive); len(open) != 1 || open[0].Request.GetParameters()["pool"] != "" {
				t.Errorf("built again at once: %+v", open)
			}
			f.Timeouts.RepeatedFailure = time.Nanosecond
			f.failNext("create", "persistentvolumes", false)
			f.reconcile(true)
			if open := f.entries(journal.KindActive); len(open) != 1 || open[0].Request.GetParameters()["pool"] != "changed" ||
				len(open[0].Superseded) != 1 {
				t.Errorf("entries: %+v", open)
			}
			f.reconcile(false)
			f.expect(1, 1, 3, 0)
		})
	}
}

func TestUnwritableJournalIsReportedOnClaim(t *testing.T) {
	f := newFlow(t)
	f.failNext("update", "leases", false)
	f.reconcile(true)
	if events := f.takeEvents(); !strings.Contains(events, "ProvisioningFailed") || !strings.Contains(events, "journal") {
		t.Errorf("events: %s", events)
	}
}

// The process loses the permission to write Leases.
func TestClaimIsServedWithoutLeasePermission(t *testing.T) {
	for name, tc := range map[string]struct {
		allowed  bool
		recorded int
	}{"permission missing": {false, 1}, "forbidden for another reason": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			var reasons []string
			f.Bypassed = func(reason string) { reasons = append(reasons, reason) }
			f.react("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(v1.Resource("leases"), "journal", errors.New("scripted"))
			})
			f.react("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: tc.allowed}}, nil
			})
			f.store.ForbiddenFor = 0
			f.reconcile(true)
			f.reconcile(tc.recorded == 0)
			f.reconcile(tc.recorded == 0)
			f.expect(tc.recorded, tc.recorded, tc.recorded, 0)
			if len(reasons) != tc.recorded {
				t.Errorf("calls without an entry: %v", reasons)
			}
			// A teardown takes the journal for complete unless an event of the claim says otherwise.
			if says := strings.Contains(f.takeEvents(), provisioningUnlogged); says != (tc.recorded > 0) {
				t.Errorf("an event says that the call has no entry: %t", says)
			}
		})
	}
}

func TestLongUnansweredRequestIsRepeatedWithoutItsClass(t *testing.T) {
	f := newFlow(t)
	f.injectFault(codes.DeadlineExceeded, true, 1)
	f.reconcile(true)
	f.Timeouts.RepeatedFailure = 0
	f.must(f.Classes.GetStore().Replace(nil, ""))
	f.reconcile(false)
	f.expect(1, 1, 2, 0)
}
