package controller

import (
	"net/http"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/patch"
)

// diskOf returns a volume that refers to the claim, "" for none.
func diskOf(uid types.UID, claim string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk", UID: uid, ResourceVersion: "7"}}
	if claim != "" {
		volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: claim}
	}
	return volume
}

func claimNamed(name string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

func TestLivePair(t *testing.T) {
	for name, tc := range map[string]struct {
		stored  []runtime.Object
		cached  *v1.PersistentVolume
		volume  bool
		claimed string
	}{
		"both exist":                       {[]runtime.Object{diskOf("1", "data"), claimNamed("data")}, diskOf("1", "data"), true, "data"},
		"the claim is gone":                {[]runtime.Object{diskOf("1", "data")}, diskOf("1", "data"), true, ""},
		"the volume is gone":               {[]runtime.Object{claimNamed("data")}, diskOf("1", "data"), false, ""},
		"another volume has the name":      {[]runtime.Object{diskOf("2", "data"), claimNamed("data")}, diskOf("1", "data"), false, ""},
		"no claim is named":                {[]runtime.Object{diskOf("1", "")}, diskOf("1", ""), true, ""},
		"another claim is named meanwhile": {[]runtime.Object{diskOf("1", "new"), claimNamed("data"), claimNamed("new")}, diskOf("1", "data"), true, "new"},
		"no claim is named any more":       {[]runtime.Object{diskOf("1", ""), claimNamed("data")}, diskOf("1", "data"), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			volume, claim, _, err := LivePair(t.Context(), fake.NewClientset(tc.stored...), tc.cached)
			if err != nil || (volume != nil) != tc.volume {
				t.Fatalf("volume %v, error %v, want a volume: %v", volume, err, tc.volume)
			}
			if got := claim != nil; got != (tc.claimed != "") || got && claim.Name != tc.claimed {
				t.Errorf("claim %v, want %q", claim, tc.claimed)
			}
		})
	}
}

// The API server stores a claimRef without a namespace or with any name, and serves no path of such a claim.
func TestImpossibleClaimRefNamesNoClaim(t *testing.T) {
	for _, ref := range []v1.ObjectReference{{Name: "data", UID: "1"}, {Namespace: "ns", UID: "1"},
		{Namespace: "ns", Name: "a/b", UID: "1"}, {Namespace: "..", Name: "data", UID: "1"}} {
		client := fake.NewClientset()
		client.PrependReactor("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", v1.Resource(""), "",
				"404 page not found", 0, true)
		})
		volume := diskOf("1", "")
		volume.Spec.ClaimRef = &ref
		if claim, err := LiveClaim(t.Context(), client, volume); claim != nil || err != nil {
			t.Errorf("claimRef %v: claim %v, error %v, want none", ref, claim, err)
		}
	}
}

// The answer of a load balancer that does not know the path must not make a volume free for deletion.
func TestLivePairNeedsProofOfAbsence(t *testing.T) {
	for _, resource := range []string{"persistentvolumes", "persistentvolumeclaims"} {
		client := fake.NewClientset(diskOf("1", "data"), claimNamed("data"))
		client.PrependReactor("get", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
			name := action.(clienttesting.GetAction).GetName()
			return true, nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", v1.Resource(resource), name,
				"404 page not found", 0, true)
		})
		if volume, claim, _, err := LivePair(t.Context(), client, diskOf("1", "data")); err == nil {
			t.Errorf("without an answer about %s: volume %v, claim %v, no error", resource, volume, claim)
		}
		if _, err := ReadLive(t.Context(), "volume", "disk", client.CoreV1().PersistentVolumes().
			Get); (err != nil) != (resource == "persistentvolumes") {
			t.Errorf("without an answer about %s: error %v", resource, err)
		}
	}
}

// A health page behind the address of the API server says 200 to everything, and is decoded as an empty object.
func TestEmptyAnswerIsAnError(t *testing.T) {
	client := fake.NewClientset(diskOf("1", "data"), claimNamed("data"))
	client.PrependReactor("*", "persistentvolumes",
		func(clienttesting.Action) (bool, runtime.Object, error) { return true, &v1.PersistentVolume{}, nil })
	client.PrependReactor("*", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &v1.PersistentVolumeClaim{}, nil
	})
	writer := NewWriter(client, NewVersions())
	_, _, _, pair := LivePair(t.Context(), client, diskOf("1", "data"))
	_, claim := LiveClaim(t.Context(), client, diskOf("1", "data"))
	_, volume := LiveVolume(t.Context(), client, diskOf("1", "data"))
	_, patchedVolume := writer.PatchVolume(t.Context(), diskOf("1", ""), patch.For(diskOf("1", "")).Set("/a", "b"))
	_, patchedClaim := writer.PatchClaim(t.Context(), claimNamed("data"), patch.For(claimNamed("data")).Set("/a", "b"))
	for i, err := range []error{pair, claim, volume, patchedVolume, patchedClaim} {
		if err == nil {
			t.Errorf("answer %d has no error", i)
		}
	}
}

// A user may set Retain while the claim is read: the volume counts as it is at the end.
func TestLivePairReadsVolumeLast(t *testing.T) {
	client := fake.NewClientset(diskOf("1", "data"), claimNamed("data"))
	if _, _, _, err := LivePair(t.Context(), client, diskOf("1", "data")); err != nil {
		t.Fatal(err)
	}
	var read []string
	for _, action := range client.Actions() {
		read = append(read, action.GetResource().Resource)
	}
	if want := "persistentvolumes"; len(read) != 2 || read[1] != want {
		t.Errorf("reads %v, want a claim and then %s", read, want)
	}
}

func TestPhaseThatIsEmptyIsRequiredByVersion(t *testing.T) {
	for phase, want := range map[v1.PersistentVolumePhase]string{
		"":             `[{"op":"test","path":"/metadata/uid","value":"1"},{"op":"test","path":"/metadata/resourceVersion","value":"7"}]`,
		v1.VolumeBound: `[{"op":"test","path":"/metadata/uid","value":"1"},{"op":"test","path":"/status/phase","value":"Bound"}]`,
	} {
		volume := diskOf("1", "")
		volume.Status.Phase = phase
		body, err := RequirePhase(patch.For(volume), volume).Bytes()
		if err != nil || string(body) != want {
			t.Errorf("phase %q: %s, %v, want %s", phase, body, err, want)
		}
	}
}

// The last write of an object is never seen, so nothing may wait for it.
func TestLastWriteOfObjectIsNotAwaited(t *testing.T) {
	now := metav1.Now()
	for name, tc := range map[string]struct {
		deleted    *metav1.Time
		finalizers []string
		awaited    bool
	}{
		"live":                             {nil, nil, true},
		"deleted, a finalizer is left":     {&now, []string{"other"}, true},
		"deleted, the last finalizer went": {&now, nil, false},
	} {
		written := diskOf("1", "")
		written.DeletionTimestamp, written.Finalizers, written.ResourceVersion = tc.deleted, tc.finalizers, "8"
		client := fake.NewClientset()
		client.PrependReactor("patch", "persistentvolumes",
			func(clienttesting.Action) (bool, runtime.Object, error) { return true, written, nil })
		versions := NewVersions()
		cached := diskOf("1", "")
		if _, err := NewWriter(client, versions).PatchVolume(t.Context(), cached,
			patch.For(cached).Remove("/metadata/finalizers")); err != nil {
			t.Fatal(err)
		}
		if got := !versions.IsFresh(cached); got != tc.awaited {
			t.Errorf("%s: the write is awaited: %v, want %v", name, got, tc.awaited)
		}
	}
}
