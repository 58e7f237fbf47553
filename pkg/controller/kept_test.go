package controller_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// labelled is a volume that is kept if it has the label.
func labelled(name string, kept bool) *v1.PersistentVolume {
	v := volume(name, "1")
	if kept {
		v.Labels = map[string]string{"kept": ""}
	}
	return v
}

func isLabelled(object runtime.Object) bool {
	_, kept := object.(*v1.PersistentVolume).Labels["kept"]
	return kept
}

// source is a server with a list and a watch.
func source(list []v1.PersistentVolume, watched watch.Interface) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &v1.PersistentVolumeList{Items: list}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watched, nil },
	}
}

func TestACacheSeesWhatIsKeptAlone(t *testing.T) {
	events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 20})
	kept, _ := controller.Kept(source(nil, events), nil, isLabelled)
	watched, err := cache.ToWatcherWithContext(kept).WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true)})
	if err != nil {
		t.Fatal(err)
	}
	events.Add(labelled("foreign", false))
	events.Add(labelled("ours", true))
	events.Action(watch.Bookmark, &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}})
	events.Modify(labelled("foreign", false))
	events.Modify(labelled("ours", true))
	events.Modify(labelled("foreign", true))  // it becomes ours
	events.Modify(labelled("ours", false))    // and this one somebody else's
	events.Modify(labelled("ours", false))    // which is nothing new
	events.Delete(labelled("unheard", false)) // somebody may wait for the name
	events.Delete(labelled("foreign", true))
	events.Error(&metav1.Status{Reason: metav1.StatusReasonExpired})
	events.Stop()
	var got []string
	for event := range watched.ResultChan() {
		name := ""
		if v, ok := event.Object.(*v1.PersistentVolume); ok {
			name = v.Name
		}
		got = append(got, fmt.Sprintf("%s %s", event.Type, name))
	}
	want := []string{
		"ADDED ours", "BOOKMARK ", "MODIFIED ours", "MODIFIED foreign", "DELETED ours",
		"DELETED unheard", "DELETED foreign", "ERROR ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the cache sees %q, want %q", got, want)
	}
}

func TestACacheListsWhatIsKeptAloneAndKnowsItInTheWatchThatFollows(t *testing.T) {
	events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 20})
	kept, _ := controller.Kept(source([]v1.PersistentVolume{*labelled("ours", true), *labelled("foreign", false)}, events), nil, isLabelled)
	list, err := cache.ToListerWithContext(kept).ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if items := list.(*v1.PersistentVolumeList).Items; len(items) != 1 || items[0].Name != "ours" {
		t.Errorf("the list has %v", items)
	}
	watched, err := cache.ToWatcherWithContext(kept).WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events.Modify(labelled("foreign", false))
	events.Modify(labelled("ours", false))
	if event := <-watched.ResultChan(); event.Type != watch.Deleted || event.Object.(*v1.PersistentVolume).Name != "ours" {
		t.Errorf("the cache sees %+v, want the deletion of what is no longer ours", event)
	}
}

// What came by a list may have been written long before it.
func TestOnlyWhatIsNewerThanTheLastListWasStreamed(t *testing.T) {
	events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 20})
	listed := &cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &v1.PersistentVolumeList{ListMeta: metav1.ListMeta{ResourceVersion: "20"}}
			if options.Continue == "" {
				list.Continue = "more"
			}
			return list, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
	}
	kept, streamed := controller.Kept(listed, nil, isLabelled)
	expect := func(when string, want ...bool) {
		t.Helper()
		for i, version := range []string{"19", "20", "21"} {
			if got := streamed(version); got != want[i] {
				t.Errorf("%s: %s was streamed: %v, want %v", when, version, got, want[i])
			}
		}
	}
	list := func(options metav1.ListOptions) {
		t.Helper()
		if _, err := cache.ToListerWithContext(kept).ListWithContext(t.Context(), options); err != nil {
			t.Fatal(err)
		}
	}
	expect("before a list", false, false, false)
	list(metav1.ListOptions{})
	expect("amid a list", false, false, false)
	list(metav1.ListOptions{Continue: "more"})
	expect("after it", false, false, true)
	watched, err := cache.ToWatcherWithContext(kept).WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true)})
	if err != nil {
		t.Fatal(err)
	}
	events.Add(labelled("ours", true))
	<-watched.ResultChan()
	expect("amid a list that is streamed", false, false, false)
	events.Action(watch.Bookmark, &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "19", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}})
	<-watched.ResultChan()
	expect("after one", false, true, true)
}

func TestAStoppedWatchEndsThoughNobodyReadsIt(t *testing.T) {
	events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 20})
	kept, _ := controller.Kept(source(nil, events), nil, isLabelled)
	watched, err := cache.ToWatcherWithContext(kept).WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events.Add(labelled("a", true))
	events.Add(labelled("b", true))
	watched.Stop()
	watched.Stop() // as reflectors do
	for {
		select {
		case _, open := <-watched.ResultChan():
			if !open {
				return
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the watch does not end")
		}
	}
}
