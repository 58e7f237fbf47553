package provisioning

import (
	"context"
	"errors"
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

func (w *wrapped) CreateVolume(ctx context.Context, request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	if w.before != nil {
		w.before()
	}
	return w.Driver.CreateVolume(ctx, request)
}

// The PersistentVolume comes and goes during the call, and no entry has events wake
// the claim.
func TestCallOfGoneClaimIsRepeatedSoon(t *testing.T) {
	f := newFlow(t)
	f.journaled.Store(false)
	f.inject(codes.DeadlineExceeded, true, 1)
	f.step(true)
	f.vanish()
	calls, recorded := 0, make(chan struct{})
	own := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"}, Spec: v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{UID: "uid"}}}
	f.calls.before = func() {
		switch calls++; {
		case calls < 9: // more often than the watch of claims wakes it
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
		t.Error("nothing has the request repeated")
	}
	stop()
	<-ended
}

func TestRescheduledClaimWaitsForScheduler(t *testing.T) {
	f := newFlow(t)
	f.calls.spread = true
	f.Node = func(_ context.Context, name string) (*v1.Node, error) {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil
	}
	f.delayBinding()
	f.change(func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "full" })
	f.inject(codes.ResourceExhausted, false, 1)
	f.step(false)
	f.expect(0, 0, 1, 0)
	if _, selected := f.now().Annotations[storage.AnnSelectedNode]; selected {
		t.Error("the node is still selected")
	}
}

func TestInfeasibleRequestWaitsWithoutJournal(t *testing.T) {
	f := newFlow(t)
	f.journaled.Store(false)
	f.inject(codes.InvalidArgument, false, 1)
	f.step(false)
	f.expect(0, 0, 1, 0)
}

func TestChangedAttributesClassWakesClaim(t *testing.T) {
	f := newFlow(t)
	changed := f.now().DeepCopy()
	changed.Spec.VolumeAttributesClassName = ptr.To("fast")
	if !f.needsReconcile(f.now(), changed) {
		t.Error("the claim is not tried again")
	}
}

// delayBinding has the class wait for the scheduler.
func (f *flow) delayBinding() {
	f.Helper()
	class, err := f.client.StorageV1().StorageClasses().Get(f.Context(), "class", metav1.GetOptions{})
	f.must(err)
	class = class.DeepCopy()
	class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	f.must(f.Classes.GetStore().Update(class))
}

// mend gives the class a parameter.
func (f *flow) mend(key, value string) {
	f.Helper()
	class, err := f.client.StorageV1().StorageClasses().Get(f.Context(), "class", metav1.GetOptions{})
	f.must(err)
	class = class.DeepCopy()
	class.Parameters = map[string]string{key: value}
	f.must(f.Classes.GetStore().Update(class))
}

// Somebody mends the class of a claim whose first call timed out.
func TestLongUnansweredRequestIsBuiltAgain(t *testing.T) {
	for name, code := range map[string]codes.Code{"timeouts": codes.DeadlineExceeded, "internal errors": codes.Internal, "a missing pool": codes.NotFound} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			f.inject(codes.DeadlineExceeded, false, 1)
			f.step(true)
			f.inject(code, false, 1)
			f.mend("pool", "mended")
			f.step(true)
			if open := f.entries(journal.KindActive); len(open) != 1 || open[0].Request.GetParameters()["pool"] != "" {
				t.Errorf("built again at once: %+v", open)
			}
			f.Timeouts.RepeatedFailure = time.Nanosecond
			f.fail("create", "persistentvolumes", false)
			f.step(true)
			if open := f.entries(journal.KindActive); len(open) != 1 || open[0].Request.GetParameters()["pool"] != "mended" || len(open[0].Superseded) != 1 {
				t.Errorf("entries: %+v", open)
			}
			f.step(false)
			f.expect(1, 1, 3, 0)
		})
	}
}

func TestUnwritableJournalIsReportedOnTheClaim(t *testing.T) {
	f := newFlow(t)
	f.fail("update", "leases", false)
	f.step(true)
	if events := f.reported(); !strings.Contains(events, "ProvisioningFailed") || !strings.Contains(events, "journal") {
		t.Errorf("events: %s", events)
	}
}

// The right to write Leases is taken away while the process leads.
func TestClaimIsServedWithoutRightToWriteLeases(t *testing.T) {
	for name, tc := range map[string]struct {
		allowed  bool
		recorded int
	}{"the right is missing": {false, 1}, "something else forbids it": {true, 0}} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			var reasons []string
			f.Bypassed = func(reason string) { reasons = append(reasons, reason) }
			f.client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(v1.Resource("leases"), "journal", errors.New("scripted"))
			})
			f.client.PrependReactor("create", "selfsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &authorizationv1.SelfSubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: tc.allowed}}, nil
			})
			f.store.ForbiddenFor = 0
			f.step(true)
			f.step(tc.recorded == 0)
			f.step(tc.recorded == 0)
			f.expect(tc.recorded, tc.recorded, tc.recorded, 0)
			if len(reasons) != tc.recorded {
				t.Errorf("calls without an entry: %v", reasons)
			}
		})
	}
}

func TestLongUnansweredRequestIsRepeatedWithoutItsClass(t *testing.T) {
	f := newFlow(t)
	f.inject(codes.DeadlineExceeded, true, 1)
	f.step(true)
	f.Timeouts.RepeatedFailure = 0
	f.must(f.Classes.GetStore().Replace(nil, ""))
	f.step(false)
	f.expect(1, 1, 2, 0)
}
