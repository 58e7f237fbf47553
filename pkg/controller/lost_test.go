package controller

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func diskAt(version string) *v1.PersistentVolume {
	volume := diskOf("uid", "")
	volume.ResourceVersion = version
	return volume
}

// The cache shows version 1 after a write of version 8. A late watch will show the write, a restored etcd never will.
func TestLostWriteIsForgottenAfterMinute(t *testing.T) {
	replaced := diskAt("9")
	replaced.UID = "another"
	for name, tc := range map[string]struct {
		live *v1.PersistentVolume // nil for none
		lost bool
	}{
		"as before the write":      {diskAt("1"), true},
		"older than the cache":     {diskAt("0"), true},
		"written":                  {diskAt("8"), false},
		"changed since":            {diskAt("9"), false},
		"gone":                     {nil, false},
		"another one has its name": {replaced, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { awaitLost(t, tc.live, tc.lost) })
		})
	}
}

func awaitLost(t *testing.T, live *v1.PersistentVolume, lost bool) {
	var objects []runtime.Object
	if live != nil {
		objects = append(objects, live)
	}
	client, versions, cached := fake.NewClientset(objects...), NewVersions(), diskAt("1")
	var told []metav1.Object
	versions.OnLost(func(object metav1.Object) { told = append(told, object) })
	versions.RecordWrite(diskAt("8"))
	await := func() {
		if err := versions.AwaitVolume(t.Context(), client, cached); !errors.Is(err, ErrStaleCache) {
			t.Errorf("AwaitVolume() = %v, want %v", err, ErrStaleCache)
		}
	}
	await()
	if len(client.Actions()) > 0 || versions.IsFresh(cached) {
		t.Errorf("%d reads within a minute", len(client.Actions()))
	}
	<-time.After(overdueWrite)
	await()
	await()
	if got := versions.IsFresh(cached); got != lost || (len(told) > 0) != lost {
		t.Errorf("the write is forgotten: %v, told %v, want %v", got, told, lost)
	}
	if len(client.Actions()) != 1 {
		t.Errorf("%d reads in a minute, want one", len(client.Actions()))
	}
}

func TestUnreadableObjectKeepsItsWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, versions, unavailable := fake.NewClientset(), NewVersions(), errors.New("unavailable")
		client.PrependReactor("get", "persistentvolumes",
			func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, unavailable })
		versions.RecordWrite(diskAt("8"))
		<-time.After(overdueWrite)
		if err := versions.AwaitVolume(t.Context(), client, diskAt("1")); !errors.Is(err, unavailable) ||
			versions.IsFresh(diskAt("1")) {
			t.Errorf("AwaitVolume() = %v, want %v", err, unavailable)
		}
	})
}

// A write that comes while the object is read counts.
func TestLaterWriteOfLostOneCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, versions := fake.NewClientset(diskAt("1")), NewVersions()
		client.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
			versions.RecordWrite(diskAt("9"))
			return false, nil, nil
		})
		versions.RecordWrite(diskAt("8"))
		<-time.After(overdueWrite)
		if err := versions.AwaitVolume(t.Context(), client, diskAt("1")); !errors.Is(err, ErrStaleCache) ||
			versions.IsFresh(diskAt("8")) {
			t.Errorf("AwaitVolume() = %v, and the later write is forgotten", err)
		}
	})
}

func TestReadIsTooOldAfterMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := time.Now()
		suspended := read.Round(0).Add(-oldestRead) // the wall clock alone went on
		<-time.After(oldestRead)
		if err := CheckRead(read); err != nil {
			t.Error(err)
		}
		<-time.After(time.Nanosecond)
		for _, at := range []time.Time{read, suspended, {}} {
			if err := CheckRead(at); err == nil || errors.Is(err, ErrStaleCache) {
				t.Errorf("CheckRead(%v) = %v, want an error that is logged", at, err)
			}
		}
	})
}
