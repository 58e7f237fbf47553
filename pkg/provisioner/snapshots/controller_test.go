package snapshots_test

import (
	"context"
	"errors"
	"strings"
	"testing"
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
	"github.com/exeunt-io/exeunt/pkg/provisioner/snapshots"
)

const foreign = "example.com/other"

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
		Spec:       v1.PersistentVolumeClaimSpec{DataSource: &v1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: name}},
		Status:     v1.PersistentVolumeClaimStatus{Phase: phase},
	}
}

type world struct {
	*snapshots.Controller
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
	w := &world{t: t, events: record.NewFakeRecorder(10), metadata: metadatafake.NewSimpleMetadataClient(scheme, objects...), client: fake.NewClientset()}
	w.client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		review.Status.Allowed = w.rights.allowed
		return true, review, nil
	})
	w.claims = informers.NewSharedInformerFactory(w.client, 0).Core().V1().PersistentVolumeClaims().Informer()
	var err error
	w.Controller, err = snapshots.New(snapshots.Config{
		Client: w.client, Metadata: w.metadata, REST: w.updating(), Recorder: w.events, Claims: w.claims, Interval: interval,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) finalizers(t *testing.T, name string) string {
	t.Helper()
	now, err := w.metadata.Resource(snapshots.Resource).Namespace("ns").Get(t.Context(), name, metav1.GetOptions{})
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
		return true, nil, apierrors.NewNotFound(snapshots.Resource.GroupResource(), "")
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
		"failed test":          {apierrors.NewInvalid(schema.GroupKind{}, "snap", nil), foreign, "uid", foreign + " " + ours},
		"conflict":             {apierrors.NewConflict(snapshots.Resource.GroupResource(), "snap", errors.New("changed")), foreign, "uid", foreign + " " + ours},
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
