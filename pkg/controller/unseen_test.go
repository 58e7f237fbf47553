package controller

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/patch"
)

// A write of version 8 was based on version 7. If etcd was restored to version 7, no event follows.
var unseenWrites = map[string]struct {
	write  func(*Versions)
	cached *v1.PersistentVolume // nil for none
	want   bool
}{
	"write is lost":                {written, diskAt("7"), true},
	"versions cannot be compared":  {written, diskAt("x"), true},
	"write is seen":                {written, diskAt("8"), false},
	"changed since":                {written, diskAt("9"), false},
	"gone after a write":           {written, nil, false},
	"replaced after a write":       {written, replaced(), false},
	"deletion is lost":             {expected, diskAt("7"), true},
	"lost deletion of the version": {func(versions *Versions) { versions.ExpectChange(diskAt("8")) }, diskAt("7"), true},
	"deletion has begun":           {expected, diskAt("8"), false},
	"gone":                         {expected, nil, false},
	"replaced":                     {expected, replaced(), false},
	"lost write before a deletion": {func(versions *Versions) { written(versions); expected(versions) }, diskAt("7"), true},
	"lost write after a deletion":  {func(versions *Versions) { expected(versions); written(versions) }, diskAt("7"), true},
}

func written(versions *Versions)  { versions.RecordWrite(diskAt("8")) }
func expected(versions *Versions) { versions.ExpectChange(diskAt("7")) }

func replaced() *v1.PersistentVolume {
	disk := diskAt("7")
	disk.UID = "another"
	return disk
}

func TestObjectOfUnseenWriteIsEnqueued(t *testing.T) {
	for name, tc := range unseenWrites {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				versions, volumes := NewVersions(), cachedVolumes(t, tc.cached)
				var enqueued keys
				versions.RequeueUnseen(t.Context(), cachedVolumes(t, nil), func(key string) { t.Errorf("%s is enqueued as another kind", key) })
				versions.RequeueUnseen(t.Context(), volumes, enqueued.add)
				tc.write(versions)
				<-time.After(overdueWrite - time.Nanosecond)
				synctest.Wait()
				if early := enqueued.all(); len(early) > 0 {
					t.Errorf("enqueued %q within a minute", early)
				}
				<-time.After(time.Nanosecond)
				synctest.Wait()
				if late := enqueued.all(); slices.Equal(late, []string{"disk"}) != tc.want || len(late) > 1 {
					t.Errorf("enqueued %q, want it: %v", late, tc.want)
				}
				if kept := len(versions.written); kept > 0 && !tc.want {
					t.Errorf("%d records are kept", kept)
				}
			})
		})
	}
}

// keys are those that were enqueued.
type keys struct {
	mu   sync.Mutex
	list []string
}

func (k *keys) add(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, key)
}

func (k *keys) all() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.list)
}

func cachedVolumes(t *testing.T, volume *v1.PersistentVolume) cache.SharedIndexInformer {
	t.Helper()
	informer := cache.NewSharedIndexInformer(nil, &v1.PersistentVolume{}, 0, cache.Indexers{})
	if volume != nil {
		if err := informer.GetStore().Add(volume); err != nil {
			t.Fatal(err)
		}
	}
	return informer
}

// Writes are checked as long as one has had no event, and no longer than the process works.
func TestUnseenWritesAreCheckedUntilTheyAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		working, end := context.WithCancel(t.Context())
		versions, volumes := NewVersions(), cachedVolumes(t, diskAt("7"))
		var enqueued keys
		versions.RequeueUnseen(working, volumes, enqueued.add)
		pass := func(minutes, want int) {
			t.Helper()
			<-time.After(time.Duration(minutes) * overdueWrite)
			synctest.Wait()
			if got := len(enqueued.all()); got != want {
				t.Errorf("enqueued %d times, want %d", got, want)
			}
		}
		pass(3, 0)
		versions.RecordWrite(diskAt("8"))
		pass(2, 2)
		if err := volumes.GetStore().Update(diskAt("8")); err != nil {
			t.Fatal(err)
		}
		pass(1, 2)
		if versions.checking {
			t.Error("a timer runs though each write was seen")
		}
		versions.RecordWrite(diskAt("9"))
		end()
		pass(3, 2)
		if versions.checking || versions.IsFresh(diskAt("8")) {
			t.Errorf("checking: %v after the end of the work, or the write is forgotten", versions.checking)
		}
	})
}

// A reconciler does not wait for the event of a deletion: it may look at the object meanwhile.
func TestLostRemovalOfLastFinalizerIsEnqueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, removed := diskAt("7"), diskAt("8")
		before.Finalizers, before.DeletionTimestamp = []string{"example.com/last"}, new(metav1.Now())
		removed.DeletionTimestamp = before.DeletionTimestamp
		client, versions, enqueued := fake.NewClientset(before), NewVersions(), new(keys)
		client.PrependReactor("patch", "persistentvolumes",
			func(clienttesting.Action) (bool, runtime.Object, error) { return true, removed, nil })
		versions.RequeueUnseen(t.Context(), cachedVolumes(t, before), enqueued.add)
		versions.RecordWrite(before)
		if _, err := NewWriter(client, versions).PatchVolume(t.Context(), before,
			patch.For(before).Remove("/metadata/finalizers")); err != nil {
			t.Fatal(err)
		}
		if !versions.IsFresh(before) {
			t.Error("the object is stale")
		}
		<-time.After(overdueWrite)
		synctest.Wait()
		if got := len(enqueued.all()); got != 1 {
			t.Errorf("enqueued %d times, want once", got)
		}
	})
}
