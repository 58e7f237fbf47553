package sources_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
	"github.com/exeunt-io/exeunt/pkg/provisioner/sources"
)

func snapshot(name string, finalizers ...string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "snapshot.storage.k8s.io/v1", Kind: "VolumeSnapshot"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "uid", ResourceVersion: "1", Finalizers: finalizers},
	}
}

// from returns a claim in the phase whose volume is restored from the snapshot.
func from(name string, phase v1.PersistentVolumeClaimPhase) *v1.PersistentVolumeClaim {
	group := "snapshot.storage.k8s.io"
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim-of-" + name, UID: "claim", ResourceVersion: "1"},
		Spec: v1.PersistentVolumeClaimSpec{DataSource: &v1.TypedLocalObjectReference{APIGroup: &group,
			Kind: "VolumeSnapshot", Name: name}},
		Status: v1.PersistentVolumeClaimStatus{Phase: phase},
	}
}

type world struct {
	*sources.Snapshots
	t        *testing.T
	events   *record.FakeRecorder
	rights   rights
	metadata *metadatafake.FakeMetadataClient
	client   *fake.Clientset
	claims   cache.SharedIndexInformer
}

func newWorld(t *testing.T, interval time.Duration, objects ...runtime.Object) *world {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, events: record.NewFakeRecorder(10), metadata: metadatafake.NewSimpleMetadataClient(scheme,
		objects...), client: fake.NewClientset()}
	w.client.PrependReactor("create", "selfsubjectaccessreviews",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
			review.Status.Allowed = w.rights.allowed
			return true, review, nil
		})
	w.claims = informers.NewSharedInformerFactory(w.client, 0).Core().V1().PersistentVolumeClaims().Informer()
	var err error
	w.Snapshots, err = sources.NewSnapshots(sources.SnapshotConfig{
		Client: w.client, Metadata: w.metadata, REST: w.updating(), Recorder: w.events, Claims: w.claims, Interval: interval,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) finalizers(t *testing.T, name string) string {
	t.Helper()
	now, err := w.metadata.Resource(sources.SnapshotResource).Namespace("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(now.Finalizers, " ")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const ours = string(finalizer.SnapshotSource)

func TestUnneededSnapshotLosesFinalizer(t *testing.T) {
	for name, tc := range map[string]struct {
		cached, live *v1.PersistentVolumeClaim
		want         string
		err          error
	}{
		"pending claim":                      {from("snap", v1.ClaimPending), from("snap", v1.ClaimPending), foreign + " " + ours, nil},
		"pending claim that the cache lacks": {nil, from("snap", v1.ClaimPending), foreign + " " + ours, controller.ErrStaleCache},
		"bound claim":                        {from("snap", v1.ClaimBound), from("snap", v1.ClaimBound), foreign, nil},
		"pending claim of another snapshot":  {from("other", v1.ClaimPending), from("other", v1.ClaimPending), foreign, nil},
		"no claim":                           {nil, nil, foreign, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 0, snapshot("snap", foreign, ours))
			if tc.cached != nil {
				must(t, w.claims.GetStore().Add(tc.cached))
			}
			if tc.live != nil {
				must(t, w.client.Tracker().Add(tc.live))
			}
			if err := w.Reconcile(t.Context(), "ns/snap"); !errors.Is(err, tc.err) {
				t.Errorf("err = %v, want %v", err, tc.err)
			}
			if got := w.finalizers(t, "snap"); got != tc.want {
				t.Errorf("finalizers %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNeededOrMissingSnapshotIsNotWritten(t *testing.T) {
	w := newWorld(t, 0, snapshot("snap", ours))
	must(t, w.claims.GetStore().Add(from("snap", v1.ClaimPending)))
	must(t, w.Reconcile(t.Context(), "ns/snap"))
	if len(w.metadata.Actions()) != 0 {
		t.Errorf("requests for a needed snapshot: %v", w.metadata.Actions())
	}
	must(t, w.Reconcile(t.Context(), "ns/gone"))
	for _, action := range w.metadata.Actions() {
		if action.GetVerb() != "get" {
			t.Errorf("needless write: %v", action)
		}
	}
}

func TestProtect(t *testing.T) {
	leaving := snapshot("snap")
	leaving.DeletionTimestamp = &metav1.Time{}
	for name, tc := range map[string]struct {
		snapshot *metav1.PartialObjectMetadata
		want     string
		fails    bool
	}{
		"unprotected snapshot":            {snapshot("snap"), ours, false},
		"snapshot with another finalizer": {snapshot("snap", foreign), foreign + " " + ours, false},
		"protected snapshot":              {snapshot("snap", ours), ours, false},
		"snapshot being deleted":          {leaving, "", true},
		"missing snapshot":                {nil, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 0)
			subject := tc.snapshot
			if subject == nil {
				subject = snapshot("snap")
			} else {
				must(t, w.metadata.Tracker().Add(subject))
			}
			if err := w.Protect(t.Context(), subject); (err != nil) != tc.fails {
				t.Errorf("err = %v", err)
			}
			if tc.snapshot != nil && w.finalizers(t, "snap") != tc.want {
				t.Errorf("finalizers %q, want %q", w.finalizers(t, "snap"), tc.want)
			}
		})
	}
}

func TestSweepFindsOrphanedFinalizers(t *testing.T) {
	w := newWorld(t, time.Hour, snapshot("orphan", ours), snapshot("kept", ours), snapshot("unprotected", foreign))
	must(t, w.claims.GetStore().Add(from("kept", v1.ClaimPending)))
	must(t, w.client.Tracker().Add(from("kept", v1.ClaimPending)))
	released := make(chan string, 10)
	w.metadata.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		released <- action.(clienttesting.PatchAction).GetName()
		return false, nil, nil
	})
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	go w.Run(ctx)
	select {
	case name := <-released:
		if name != "orphan" {
			t.Errorf("finalizer of %s was removed, want that of orphan", name)
		}
	case <-ctx.Done():
		t.Fatal("the finalizer of the orphan was not removed")
	}
	if got := w.finalizers(t, "kept"); got != ours {
		t.Errorf("a needed snapshot has the finalizers %q", got)
	}
}

func TestSweepWithoutSnapshotResource(t *testing.T) {
	w := newWorld(t, 0)
	w.metadata.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(sources.SnapshotResource.GroupResource(), "")
	})
	must(t, w.Sweep(t.Context()))
}

func TestProtectReadsStaleSnapshotAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		reject error
		now    string
		uid    types.UID
		want   string
	}{
		"failed test": {apierrors.NewInvalid(schema.GroupKind{}, "snap", nil), foreign, "uid", foreign + " " + ours},
		"conflict": {apierrors.NewConflict(sources.SnapshotResource.GroupResource(), "snap",
			errors.New("changed")), foreign, "uid", foreign + " " + ours},
		"protected meanwhile":  {apierrors.NewInvalid(schema.GroupKind{}, "snap", nil), ours, "uid", ours},
		"snapshot is replaced": {apierrors.NewInvalid(schema.GroupKind{}, "snap", nil), foreign, "another", foreign},
	} {
		t.Run(name, func(t *testing.T) {
			now := snapshot("snap", tc.now)
			now.UID, now.ResourceVersion = tc.uid, "2"
			w := newWorld(t, 0, now)
			w.metadata.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
				stale := strings.Contains(string(action.(clienttesting.PatchAction).GetPatch()), "example.com/gone-since")
				return stale, nil, tc.reject
			})
			err := w.Protect(t.Context(), snapshot("snap", foreign, "example.com/gone-since"))
			if (err != nil) != (tc.uid != "uid") || w.finalizers(t, "snap") != tc.want {
				t.Errorf("err = %v, finalizers %q, want %q", err, w.finalizers(t, "snap"), tc.want)
			}
		})
	}
}

// A claim is created after the list of claims that finds the snapshot unneeded, and its
// worker reaches the snapshot before the finalizer is removed.
func TestSnapshotIsProtectedAfterRemovalOfFinalizer(t *testing.T) {
	w := newWorld(t, 0, snapshot("snap", foreign, ours))
	synctest.Test(t, func(t *testing.T) {
		protected := make(chan error, 1)
		w.client.PrependReactor("list", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			must(t, w.claims.GetStore().Add(from("snap", v1.ClaimPending)))
			go func() {
				w.AwaitRemoval("ns/snap")
				source, err := w.metadata.Resource(sources.SnapshotResource).Namespace("ns").
					Get(t.Context(), "snap", metav1.GetOptions{})
				if err == nil {
					err = w.Protect(t.Context(), source)
				}
				protected <- err
			}()
			synctest.Wait() // the worker waits, or is done
			return true, &v1.PersistentVolumeClaimList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
		})
		must(t, w.Reconcile(t.Context(), "ns/snap"))
		must(t, <-protected)
		must(t, w.Reconcile(t.Context(), "ns/snap"))
		if got := w.finalizers(t, "snap"); got != foreign+" "+ours {
			t.Errorf("a volume is created from the snapshot with finalizers %q", got)
		}
	})
}

// A webhook refuses the removal of the finalizer, or undoes it: without an event nothing says why the snapshot stays.
func TestRefusedRemovalFromSnapshotIsReported(t *testing.T) {
	const removal = "Warning WriteRefused Removing the finalizer " + ours + " failed, and is repeated with backoff: "
	for code, reason := range map[int32]string{
		0:                              "snapshot ns/snap: too many writes to one object: another program reverts our writes",
		http.StatusForbidden:           `patch snapshot ns/snap: admission webhook "w" denied the request`,
		http.StatusNotFound:            `patch snapshot ns/snap: admission webhook "w" denied the request`,
		http.StatusUnprocessableEntity: `patch snapshot ns/snap: admission webhook "w" denied the request`,
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			w := newWorld(t, 0, snapshot("snap", foreign, ours))
			w.rights.allowed = true
			w.metadata.PrependReactor("patch", "volumesnapshots", func(clienttesting.Action) (bool, runtime.Object, error) {
				if code == 0 {
					return true, snapshot("snap", foreign, ours), nil
				}
				return true, nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code,
					Message: `admission webhook "w" denied the request`}}
			})
			for range 3 {
				if err := w.Reconcile(t.Context(), "ns/snap"); err == nil {
					t.Fatal("the refusal is no error")
				}
			}
			if count := len(w.events.Events); count != 1 {
				t.Fatalf("%d events", count)
			}
			if got := <-w.events.Events; got != removal+reason {
				t.Errorf("event %q, want %q", got, removal+reason)
			}
		})
	}
}

// The API server may execute the removal of the finalizer after its answer is lost. A volume that is
// restored meanwhile finds the finalizer, and the removal then takes it away.
func TestSnapshotStaysProtectedAfterOpenRemoval(t *testing.T) {
	w := newWorld(t, 0, snapshot("snap", foreign, ours))
	var late func()
	w.metadata.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if late != nil {
			return false, nil, nil
		}
		late = func() {
			_, _, err := clienttesting.ObjectReaction(w.metadata.Tracker())(action)
			must(t, err)
		}
		return true, nil, apierrors.NewTimeoutError("scripted", 0)
	})
	if err := w.Reconcile(t.Context(), "ns/snap"); err == nil {
		t.Fatal("the removal of the finalizer has succeeded")
	}
	claim := from("snap", v1.ClaimPending)
	must(t, w.claims.GetStore().Add(claim))
	must(t, w.client.Tracker().Add(claim))
	w.AwaitRemoval("ns/snap")
	source, err := w.metadata.Resource(sources.SnapshotResource).Namespace("ns").
		Get(t.Context(), "snap", metav1.GetOptions{})
	must(t, err)
	if err := w.Protect(t.Context(), source); err != nil {
		return // the volume is requested later
	}
	late()
	if got := w.finalizers(t, "snap"); got != foreign+" "+ours {
		t.Errorf("a volume is created from the snapshot with finalizers %q", got)
	}
}

// A claim of another provisioner leaves the cache when it is bound. Its snapshot loses the
// finalizer then without a sweep, unless another process serves the claim: if each process reacted, each
// would list the claims of the namespace.
func TestProcessOfClaimReleasesSnapshot(t *testing.T) {
	w := newWorld(t, 0, snapshot("elsewhere", ours), snapshot("here", ours))
	elsewhere, here := from("elsewhere", v1.ClaimPending), from("here", v1.ClaimPending)
	must(t, w.client.Tracker().Add(elsewhere))
	must(t, w.client.Tracker().Add(here))
	claims, _ := provisioning.NewClaims(w.client, provisioning.Names{Driver: "ours.example.com"})
	c, err := sources.NewSnapshots(sources.SnapshotConfig{
		Client: w.client, Metadata: w.metadata, REST: w.updating(), Recorder: w.events, Claims: claims,
		Elsewhere: func(claim *v1.PersistentVolumeClaim) bool { return claim.Name == elsewhere.Name },
	})
	must(t, err)
	go claims.RunWithContext(t.Context())
	cache.WaitForCacheSync(t.Context().Done(), claims.HasSynced)
	must(t, c.Watch(t.Context()))
	go c.Run(t.Context())
	for _, claim := range []*v1.PersistentVolumeClaim{elsewhere, here} {
		bound := claim.DeepCopy()
		bound.ResourceVersion, bound.Status.Phase, bound.Spec.VolumeName = "2", v1.ClaimBound, "static"
		_, err = w.client.CoreV1().PersistentVolumeClaims("ns").Update(t.Context(), bound, metav1.UpdateOptions{})
		must(t, err)
	}
	w.awaitReleased(t, "here")
	if got := w.finalizers(t, "elsewhere"); got != ours {
		t.Errorf("a process that does not serve the claim left the finalizers %q", got)
	}
	must(t, c.Sweep(t.Context()))
	w.awaitReleased(t, "elsewhere")
}

func (w *world) awaitReleased(t *testing.T, name string) {
	t.Helper()
	for end := time.After(20 * time.Second); w.finalizers(t, name) != ""; {
		select {
		case <-end:
			t.Fatalf("the snapshot %s still has the finalizer", name)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
