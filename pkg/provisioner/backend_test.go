package provisioner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
)

// scripted is a provisioner whose calls end as the test says.
type scripted struct {
	volume *v1.PersistentVolume
	state  controller.ProvisioningState
	err    error
	// during is called while Provision runs; it may be nil.
	during  func(controller.ProvisionOptions)
	deleted []*v1.PersistentVolume
}

func (s *scripted) Provision(_ context.Context,
	options controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	if s.during != nil {
		s.during(options)
	}
	return s.volume, s.state, s.err
}

func (s *scripted) Delete(_ context.Context, volume *v1.PersistentVolume) error {
	s.deleted = append(s.deleted, volume)
	return s.err
}

// picky qualifies claims.
type picky struct {
	scripted
	wanted bool
}

func (p *picky) ShouldProvision(context.Context, *v1.PersistentVolumeClaim) bool { return p.wanted }

// blocky may support block volumes.
type blocky struct {
	scripted
	supports bool
}

func (b *blocky) SupportsBlock(context.Context) bool { return b.supports }

func testOptions() controller.ProvisionOptions {
	return controller.ProvisionOptions{
		PVName: "pvc-1",
		StorageClass: &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: "fast", ResourceVersion: "7"}, Provisioner: "example.com/nfs",
			Parameters: map[string]string{"tier": "ssd"},
		},
		PVC: &v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "data", UID: "1", ResourceVersion: "9",
				Annotations: map[string]string{v1.LastAppliedConfigAnnotation: "{}", "path": "a"},
			},
			Spec: v1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast")},
		},
		SelectedNode: &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"zone": "a"}},
			Status: v1.NodeStatus{
				Addresses: []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.0.0.1"}},
				Images:    []v1.ContainerImage{{Names: []string{strings.Repeat("x", 1000)}}},
			},
		},
	}
}

func testVolume() *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
			AccessModes:                   []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Capacity:                      v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")},
			PersistentVolumeSource:        v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: "server", Path: "/pvc-1"}},
		},
	}
}

func newStorage(provisioner controller.Provisioner) *storage {
	return &storage{name: "example.com/nfs", provisioner: provisioner, idempotent: true}
}

// provisionOnce calls Provision once.
func provisionOnce(ctx context.Context, t *testing.T, s *storage) (backend.Answer, *backend.Failure) {
	t.Helper()
	planned, volume, err := s.Prepare(ctx, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	return s.Create(ctx, backend.Call{Request: planned, Volume: volume})
}

func TestProvisioningStates(t *testing.T) {
	failed := errors.New("failed")
	for name, tc := range map[string]struct {
		state  controller.ProvisioningState
		err    error
		before provision.Creation
		want   provision.Creation
		unfit  bool
	}{
		"finished, first call":           {controller.ProvisioningFinished, failed, provision.NotRequested, provision.Failed, false},
		"finished after background":      {controller.ProvisioningFinished, failed, provision.Requested, provision.FailedOnce, false},
		"background, first call":         {controller.ProvisioningInBackground, failed, provision.NotRequested, provision.Requested, false},
		"background again":               {controller.ProvisioningInBackground, failed, provision.Requested, provision.Requested, false},
		"no change, first call":          {controller.ProvisioningNoChange, failed, provision.NotRequested, provision.Failed, false},
		"no change after finished":       {controller.ProvisioningNoChange, failed, provision.Failed, provision.Failed, false},
		"no change after background":     {controller.ProvisioningNoChange, failed, provision.Requested, provision.Requested, false},
		"no change after doubted denial": {controller.ProvisioningNoChange, failed, provision.FailedOnce, provision.FailedOnce, false},
		"reschedule, first call":         {controller.ProvisioningReschedule, failed, provision.NotRequested, provision.Failed, true},
		"reschedule after background":    {controller.ProvisioningReschedule, failed, provision.Requested, provision.FailedOnce, true},
		"unknown state":                  {"", failed, provision.NotRequested, provision.Requested, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, failure := provisionOnce(t.Context(), t, newStorage(&scripted{state: tc.state, err: tc.err}))
			if failure == nil || !errors.Is(failure.Err, failed) {
				t.Fatalf("failure = %+v, want the provisioner's error", failure)
			}
			if got := provision.After(failure.Outcome, tc.before, false); got != tc.want {
				t.Errorf("after %v: %v, want %v", tc.before, got, tc.want)
			}
			if failure.NodeUnfit != tc.unfit || failure.Ignored || failure.Unresolved != "" {
				t.Errorf("failure = %+v, want NodeUnfit = %v", failure, tc.unfit)
			}
		})
	}
}

func TestInterruptedCallStaysOpen(t *testing.T) {
	for _, state := range []controller.ProvisioningState{controller.ProvisioningFinished, controller.ProvisioningNoChange,
		controller.ProvisioningReschedule} {
		ctx, cancel := context.WithCancel(t.Context())
		s := newStorage(&scripted{state: state, err: context.Canceled,
			during: func(controller.ProvisionOptions) { cancel() }})
		if _, failure := provisionOnce(ctx, t, s); failure == nil || failure.Outcome != provision.Unanswered ||
			failure.NodeUnfit {
			t.Errorf("%s: failure = %+v, want %v", state, failure, provision.Unanswered)
		}
	}
}

func TestTimeoutBoundsProvision(t *testing.T) {
	s := newStorage(&scripted{volume: testVolume()})
	s.provisionTimeout = time.Nanosecond
	s.provisioner = &silent{}
	if _, failure := provisionOnce(t.Context(), t, s); failure == nil || failure.Outcome != provision.Unanswered {
		t.Errorf("failure = %+v, want %v", failure, provision.Unanswered)
	}
}

// silent is a provisioner that never answers.
type silent struct{ scripted }

func (w *silent) Provision(ctx context.Context,
	_ controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	<-ctx.Done()
	return nil, controller.ProvisioningFinished, ctx.Err()
}

func TestIgnoredClaimIsNoFailure(t *testing.T) {
	_, failure := provisionOnce(t.Context(), t,
		newStorage(&scripted{state: controller.ProvisioningFinished, err: &controller.IgnoredError{Reason: "other"}}))
	if failure == nil || !failure.Ignored || failure.Outcome != provision.NoVolume {
		t.Errorf("failure = %+v, want Ignored and %v", failure, provision.NoVolume)
	}
}

func TestProvisionedVolumeIsAnswered(t *testing.T) {
	own := testVolume()
	own.Name = "another-name"
	answer, failure := provisionOnce(t.Context(), t, newStorage(&scripted{volume: own}))
	switch {
	case failure != nil:
		t.Fatal(failure.Err)
	case answer.Unusable != "":
		t.Errorf("unusable: %s", answer.Unusable)
	case answer.Volume.Name != "pvc-1":
		t.Errorf("name = %s, want the name of the claim's volume", answer.Volume.Name)
	case answer.Handle != "nfs:server/pvc-1":
		t.Errorf("handle = %s", answer.Handle)
	case own.Name != "another-name":
		t.Error("the provisioner's volume was changed")
	}
}

func TestVolumeThatCannotBeRecordedIsUnusable(t *testing.T) {
	for name, change := range map[string]func(*v1.PersistentVolume){
		"no source":       func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{} },
		"no access modes": func(v *v1.PersistentVolume) { v.Spec.AccessModes = nil },
		"no capacity":     func(v *v1.PersistentVolume) { v.Spec.Capacity = nil },
	} {
		t.Run(name, func(t *testing.T) {
			volume := testVolume()
			change(volume)
			answer, failure := provisionOnce(t.Context(), t, newStorage(&scripted{volume: volume}))
			if failure != nil || answer.Unusable == "" || answer.Handle == "" {
				t.Errorf("answer = %+v, failure = %+v; want an unusable volume with a handle", answer, failure)
			}
		})
	}
}

func TestNoVolumeAndNoErrorIsUncertain(t *testing.T) {
	if _, failure := provisionOnce(t.Context(), t, newStorage(&scripted{})); failure == nil ||
		failure.Outcome != provision.Uncertain {
		t.Errorf("failure = %+v, want %v", failure, provision.Uncertain)
	}
}

func TestVolumeWithoutPolicyIsRetained(t *testing.T) {
	volume := testVolume()
	volume.Spec.PersistentVolumeReclaimPolicy = ""
	answer, _ := provisionOnce(t.Context(), t, newStorage(&scripted{volume: volume}))
	if policy := answer.Volume.Spec.PersistentVolumeReclaimPolicy; policy != v1.PersistentVolumeReclaimRetain {
		t.Errorf("policy = %s, want the API server's default", policy)
	}
}

func TestSharedSourcesHaveDistinctHandles(t *testing.T) {
	a, b := testVolume(), testVolume()
	b.Name = "pvc-2"
	s := newStorage(&scripted{})
	if s.HandleOf(a) != s.HandleOf(b) {
		t.Error("volumes with one source have two handles")
	}
	if s.sharedSources = true; s.HandleOf(a) == s.HandleOf(b) {
		t.Error("volumes that may share their source have one handle")
	}
}

func TestUnqualifiedClaimIsLeftAlone(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		qualifies, err := newStorage(&picky{wanted: wanted}).Qualifies(t.Context(), testOptions().PVC)
		if qualifies != wanted || err != nil {
			t.Errorf("ShouldProvision = %v: Qualifies = %v, %v", wanted, qualifies, err)
		}
	}
}

func TestBlockVolumesNeedSupport(t *testing.T) {
	for name, tc := range map[string]struct {
		provisioner controller.Provisioner
		mode        *v1.PersistentVolumeMode
		refused     bool
	}{
		"filesystem":         {&scripted{}, ptr.To(v1.PersistentVolumeFilesystem), false},
		"no mode":            {&scripted{}, nil, false},
		"block, unsupported": {&scripted{}, ptr.To(v1.PersistentVolumeBlock), true},
		"block, declined":    {&blocky{supports: false}, ptr.To(v1.PersistentVolumeBlock), true},
		"block, supported":   {&blocky{supports: true}, ptr.To(v1.PersistentVolumeBlock), false},
	} {
		t.Run(name, func(t *testing.T) {
			options := testOptions()
			options.PVC.Spec.VolumeMode = tc.mode
			_, _, err := newStorage(tc.provisioner).Prepare(t.Context(), options)
			var refusal *provision.Refusal
			if errors.As(err, &refusal) != tc.refused {
				t.Errorf("error = %v, want refused: %v", err, tc.refused)
			}
		})
	}
}

func TestProvisionerMayChangeItsOptions(t *testing.T) {
	s := newStorage(&scripted{volume: testVolume(),
		during: func(o controller.ProvisionOptions) { o.PVC.Annotations["path"] = "changed" }})
	planned, volume, err := s.Prepare(t.Context(), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	if _, failure := s.Create(t.Context(), backend.Call{Request: planned, Volume: volume}); failure != nil {
		t.Fatal(failure.Err)
	}
	if !planned.Equal(newRequest(testOptions())) {
		t.Error("the provisioner has changed the request")
	}
}

func TestForeignEntryIsNotRestored(t *testing.T) {
	s := newStorage(&scripted{})
	for name, stored := range map[string]journal.Request{
		"CSI":        {},
		"other kind": {Payload: &journal.Payload{Kind: "other", Volume: "pvc-1"}},
		"no JSON":    {Payload: &journal.Payload{Kind: requestKind, Volume: "pvc-1", Data: []byte("x")}},
		"no claim":   {Payload: &journal.Payload{Kind: requestKind, Volume: "pvc-1", Data: []byte(`{"class":{}}`)}},
	} {
		if restored, err := s.Restore(stored, nil); err == nil {
			t.Errorf("%s: restored = %+v, want an error", name, restored)
		}
	}
}

func TestNonIdempotentRequestIsNotRepeated(t *testing.T) {
	s := newStorage(&scripted{})
	stored, _ := newRequest(testOptions()).Stored()
	s.idempotent = false
	if _, err := s.Restore(stored, nil); err == nil || !strings.Contains(err.Error(), "pvc-1") {
		t.Errorf("error = %v, want one that names the volume", err)
	}
}

func TestShortenedEntryKeepsTheVolume(t *testing.T) {
	s := newStorage(&scripted{})
	stored, _ := newRequest(testOptions()).Stored()
	short := s.Shorten(journal.Entry{UID: "1", Namespace: "default", Name: "data", State: journal.Discarding, Handle: "h",
		Request: stored, Volume: testVolume()})
	text, err := journal.Encode(short)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := journal.Decode("1", text)
	if err != nil || entry.Volume.Spec.NFS == nil {
		t.Fatalf("entry = %+v, %v; want its volume", entry, err)
	}
	restored, err := s.Restore(entry.Request, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, failure := s.Create(t.Context(), backend.Call{Request: restored}); failure == nil {
		t.Error("a request without a claim was sent")
	}
	if again, _ := restored.Stored(); !again.IsShortened() {
		t.Errorf("written again, it is no longer one without a claim: %s", again.Payload.Data)
	}
}

func TestServerSetFieldsAreDropped(t *testing.T) {
	own := testVolume()
	own.ResourceVersion, own.UID, own.GenerateName, own.DeletionTimestamp = "7", "2", "pvc-",
		&metav1.Time{Time: time.Unix(1, 0)}
	own.Labels, own.Annotations, own.Finalizers = map[string]string{"a": "b"}, map[string]string{"c": "d"},
		[]string{"example.com/own"}
	answer, failure := provisionOnce(t.Context(), t, newStorage(&scripted{volume: own}))
	if failure != nil {
		t.Fatal(failure.Err)
	}
	got := answer.Volume.ObjectMeta
	if got.ResourceVersion != "" || got.UID != "" || got.GenerateName != "" || got.DeletionTimestamp != nil {
		t.Errorf("metadata = %+v, which the API server refuses for a new object", got)
	}
	if got.Labels["a"] != "b" || got.Annotations["c"] != "d" || !slices.Equal(got.Finalizers, own.Finalizers) {
		t.Errorf("metadata = %+v, want the provisioner's labels, annotations and finalizers", got)
	}
}
