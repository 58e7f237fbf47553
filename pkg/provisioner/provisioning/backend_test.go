package provisioning

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// directories is a backend that is not a CSI driver. It creates directories.
type directories struct {
	// unprepared is the error of Prepare.
	unprepared error
	// next are the failures of the next Create calls.
	next []*backend.Failure
	// created are the names of the volumes, calls the number of calls.
	created map[string]bool
	calls   int
}

// directory is the request for one directory.
type directory struct{ name string }

func (d directory) Equal(other backend.Request) bool { return other == d }

func (d directory) WithoutCredentials() backend.Request { return d }

func (d directory) Stored() (journal.Request, *journal.Secret) {
	data, err := json.Marshal(d.name)
	if err != nil {
		panic(err)
	}
	return journal.Request{Payload: &journal.Payload{Kind: "Directory", Volume: d.name, Data: data}}, nil
}

func (*directories) Name() string { return csimock.DefaultName }

func (d *directories) Prepare(_ context.Context,
	options library.ProvisionOptions) (backend.Request, *v1.PersistentVolume, error) {
	if d.unprepared != nil {
		return nil, nil, d.unprepared
	}
	return directory{options.PVName}, &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: options.PVName},
		Spec:       v1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete},
	}, nil
}

func (*directories) Restore(stored journal.Request, _ *journal.Secret) (backend.Request, error) {
	if stored.Payload == nil || stored.Payload.Kind != "Directory" {
		return nil, errors.New("not a directory")
	}
	return directory{stored.Payload.Volume}, nil
}

func (d *directories) Create(_ context.Context, call backend.Call) (backend.Answer, *backend.Failure) {
	d.calls++
	if len(d.next) > 0 {
		failure := d.next[0]
		d.next = d.next[1:]
		return backend.Answer{}, failure
	}
	name := call.Request.(directory).name
	d.created[name] = true
	return backend.Answer{Handle: name, Shown: name, Volume: &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")},
			PersistentVolumeSource:        v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/" + name}},
		},
	}}, nil
}

func (*directories) Shorten(entry journal.Entry) journal.Entry { return entry }

// newDirectoryFlow returns a flow whose volumes are directories.
func newDirectoryFlow(t *testing.T) (*flow, *directories) {
	t.Helper()
	f, d := newFlow(t), &directories{created: map[string]bool{}}
	f.backend, f.Backend = d, d
	return f, d
}

// picky leaves all claims to another provisioner.
type picky struct{ *directories }

func (picky) Qualifies(context.Context, *v1.PersistentVolumeClaim) (bool, error) { return false, nil }

// Another provisioner serves the claim, and knows its class and its node.
func TestClaimOfAnotherProvisionerIsNotLookedInto(t *testing.T) {
	for name, change := range map[string]func(*v1.PersistentVolumeClaim){
		"node gone": func(claim *v1.PersistentVolumeClaim) { claim.Annotations[storage.AnnSelectedNode] = "gone" },
		"no class":  func(claim *v1.PersistentVolumeClaim) { claim.Spec.StorageClassName = ptr.To("gone") },
	} {
		t.Run(name, func(t *testing.T) {
			f, d := newDirectoryFlow(t)
			f.backend, f.Backend = picky{d}, picky{d}
			f.Nodes = liveNodes(func(_ context.Context, name string) (*v1.Node, error) {
				t.Error("the node is read")
				return nil, apierrors.NewNotFound(v1.Resource("nodes"), name)
			})
			f.editClaim(change)
			f.reconcile(false)
			if events := f.takeEvents(); events != "" || d.calls > 0 {
				t.Errorf("%d calls, events: %s", d.calls, events)
			}
			if node := f.syncClaim().Annotations[storage.AnnSelectedNode]; name == "node gone" && node != "gone" {
				t.Errorf("the selected node is now %q", node)
			}
		})
	}
}

func TestVolumeOfOtherBackendIsRecorded(t *testing.T) {
	f, d := newDirectoryFlow(t)
	f.reconcile(false)
	volume, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid", metav1.GetOptions{})
	f.must(err)
	assigned := provision.AssignmentOf(volume)
	if d.calls != 1 || assigned.Class != "class" || assigned.Provisioner != csimock.DefaultName ||
		assigned.ClaimRef == nil || assigned.ClaimRef.UID != "uid" {
		t.Errorf("after %d calls, assigned: %+v", d.calls, assigned)
	}
	if !finalizer.Has(volume.Finalizers, finalizer.External) || volume.Spec.HostPath == nil {
		t.Errorf("volume: %+v", volume)
	}
}

func TestEntryOfOtherBackendSurvivesCrash(t *testing.T) {
	f, d := newDirectoryFlow(t)
	d.next = []*backend.Failure{{Err: errors.New("lost answer")}}
	f.reconcile(true)
	if open := f.entries(journal.KindActive); len(open) != 1 || open[0].Request.Payload == nil ||
		open[0].Request.VolumeName() != "pvc-uid" {
		t.Fatalf("entries: %+v", open)
	}
	f.setDeleting()
	f.terms++
	f.restart()
	f.reconcile(false)
	if left := f.entries(journal.KindActive); len(left) != 0 || d.calls != 2 {
		t.Errorf("%d calls, entries: %+v", d.calls, left)
	}
	if _, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestEntryOfWrongBackendBecomesUnresolved(t *testing.T) {
	f, d := newDirectoryFlow(t)
	d.next = []*backend.Failure{{Err: errors.New("lost answer")}}
	f.reconcile(true)
	f.deleteClaim()
	f.terms++
	f.backend = nil // a CSI driver
	f.restart()
	f.reconcileDeleted(false)
	f.expect(0, 0, 0, 0)
	if unresolved := f.entries(journal.KindUnresolved); len(unresolved) != 1 || unresolved[0].Request.Payload == nil {
		t.Errorf("unresolved entries: %+v", unresolved)
	}
}

func TestUnsentFirstRequestLeavesNoEntry(t *testing.T) {
	f, d := newDirectoryFlow(t)
	d.next = []*backend.Failure{{Err: errors.New("not reached"), Outcome: provision.Unchanged}}
	f.reconcile(true)
	f.deleteClaim()
	f.reconcileDeleted(false)
	if left := f.entries(journal.KindActive); len(left) != 0 || d.calls != 1 {
		t.Errorf("%d calls, entries: %+v", d.calls, left)
	}
}

func TestIgnoredClaimIsNotReported(t *testing.T) {
	f, d := newDirectoryFlow(t)
	d.next = []*backend.Failure{{Err: errors.New("ignored"), Outcome: provision.NoVolume, Ignored: true}}
	f.reconcile(false)
	if events := f.takeEvents(); strings.Contains(events, "Warning") {
		t.Errorf("events: %s", events)
	}
	if d.calls != 1 {
		t.Errorf("%d calls", d.calls)
	}
}

// The API server would refuse the same PersistentVolume forever.
func TestVolumeWithRefusedRecordIsDiscarded(t *testing.T) {
	for name, alive := range map[string]bool{"claim lives": true, "claim deleted": false} {
		t.Run(name, func(t *testing.T) {
			f, d := newDirectoryFlow(t)
			f.DiscardRefused = true
			refusing := true
			f.react("create", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return refusing, nil, invalidVolume("")
			})
			if !alive {
				d.next = []*backend.Failure{{Err: errors.New("lost answer")}}
				f.reconcile(true)
				f.deleteClaim()
				f.reconcileDeleted(false)
			} else {
				f.reconcile(true)
				if events := f.takeEvents(); !strings.Contains(events, "the API server refuses the PersistentVolume") {
					t.Errorf("events: %s", events)
				}
			}
			if discarded := len(f.mock.Calls()) > 0 &&
				f.mock.Calls()[len(f.mock.Calls())-1].Method == "DeleteVolume"; !discarded {
				t.Errorf("calls: %+v, want DeleteVolume at last", f.mock.Calls())
			}
			if refusing = false; alive {
				f.reconcile(false)
			}
			if left := f.entries(journal.KindActive); len(left) != 0 || d.calls != 2 {
				t.Errorf("%d calls, entries: %+v", d.calls, left)
			}
			_, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid", metav1.GetOptions{})
			if recorded := err == nil; recorded != alive {
				t.Errorf("recorded = %v, %v", recorded, err)
			}
		})
	}
}

// invalidVolume is the API server's refusal of the PersistentVolume for its fields. A webhook may hand on such a
// refusal as its own denial; the API server then begins the message with the webhook's name.
func invalidVolume(prefix string) *apierrors.StatusError {
	fields := field.ErrorList{field.Required(field.NewPath("spec", "accessModes"), "at least 1 access mode is required")}
	refusal := apierrors.NewInvalid(v1.SchemeGroupVersion.WithKind("PersistentVolume").GroupKind(), "pvc-uid", fields)
	refusal.ErrStatus.Message = prefix + refusal.ErrStatus.Message
	return refusal
}

// A webhook or policy may be wrong, and allow the same PersistentVolume later.
func TestVolumeRefusedByWebhookIsNotDiscarded(t *testing.T) {
	const denied = `admission webhook "w" denied the request: `
	for name, status := range map[string]metav1.Status{
		"webhook": {Message: denied + "no"},
		"webhook with causes": {Message: denied + "no",
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldValueInvalid,
				Field: "spec"}}}},
		"webhook that validates":    invalidVolume(denied).ErrStatus,
		"ValidatingAdmissionPolicy": {Message: `persistentvolumes "pvc-uid" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no`, Details: &metav1.StatusDetails{Name: "pvc-uid", Kind: "persistentvolumes", Causes: []metav1.StatusCause{{Message: "no"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			f, d := newDirectoryFlow(t)
			f.DiscardRefused = true
			refusing := true
			status.Status, status.Code, status.Reason = metav1.StatusFailure, http.StatusUnprocessableEntity,
				metav1.StatusReasonInvalid
			f.react("create", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return refusing, nil, &apierrors.StatusError{ErrStatus: status}
			})
			f.reconcile(true)
			if events := f.takeEvents(); !strings.Contains(events, "error creating provisioned PV object") {
				t.Errorf("events: %s", events)
			}
			refusing = false
			f.reconcile(false)
			_, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid", metav1.GetOptions{})
			if calls := f.mock.Calls(); err != nil || d.calls != 1 ||
				slices.ContainsFunc(calls, func(c csimock.Call) bool { return c.Method == "DeleteVolume" }) {
				t.Errorf("%d calls of Create, calls %+v, the PersistentVolume: %v", d.calls, calls, err)
			}
		})
	}
}
