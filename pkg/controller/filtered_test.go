package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// labeled returns a volume, with the label that isLabeled accepts or without.
func labeled(name string, accepted bool) *v1.PersistentVolume {
	v := volume(name, "1")
	if accepted {
		v.Labels = map[string]string{"accepted": ""}
	}
	return v
}

func isLabeled(object runtime.Object) bool {
	_, accepted := object.(*v1.PersistentVolume).Labels["accepted"]
	return accepted
}

// source returns a list-watch that serves the list and the watch.
func source(list []v1.PersistentVolume, watched watch.Interface) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &v1.PersistentVolumeList{Items: list}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return watched, nil },
	}
}

func TestFilteredWatchPassesAcceptedObjects(t *testing.T) {
	events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 20})
	filtered, _ := controller.NewFilteredListWatch(source(nil, events), nil, isLabeled)
	watched, err := cache.ToWatcherWithContext(filtered).WatchWithContext(t.Context(),
		metav1.ListOptions{SendInitialEvents: ptr.To(true)})
	if err != nil {
		t.Fatal(err)
	}
	events.Add(labeled("foreign", false))
	events.Add(labeled("ours", true))
	events.Action(watch.Bookmark, &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}})
	events.Modify(labeled("foreign", false))
	events.Modify(labeled("ours", true))
	events.Modify(labeled("foreign", true))  // now accepted
	events.Modify(labeled("ours", false))    // no longer accepted
	events.Modify(labeled("ours", false))    // still not accepted
	events.Delete(labeled("unheard", false)) // a loop may wait for the name
	events.Delete(labeled("foreign", true))
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

// listsInPages is a client that does not stream lists.
type listsInPages struct{}

func (listsInPages) IsWatchListSemanticsUnSupported() bool { return true }

// The API server ends watches of clients that it cannot serve fast enough. Clients take a watch without events
// that ends at once for a broken one, and list all objects again.
func TestShortWatchOfForeignObjectsIsFollowedByNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists, version := 0, 20
		var begun []string
		short := &cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				lists++
				return &v1.PersistentVolumeList{ListMeta: metav1.ListMeta{ResourceVersion: "20"}}, nil
			},
			WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
				begun = append(begun, options.ResourceVersion)
				events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 2})
				if len(begun) < 4 {
					version++
					foreign := labeled("foreign", false)
					foreign.ResourceVersion = strconv.Itoa(version)
					events.Modify(foreign)
					events.Stop()
				}
				return events, nil
			},
		}
		filtered, _ := controller.NewFilteredListWatch(short, listsInPages{}, isLabeled)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		cache.NewReflector(filtered, &v1.PersistentVolume{}, cache.NewStore(cache.MetaNamespaceKeyFunc), 0).
			RunWithContext(ctx)
		if want := []string{"20", "21", "22", "23"}; lists != 1 || !slices.Equal(begun, want) {
			t.Errorf("%d lists, watches after %v, want one list and %v", lists, begun, want)
		}
	})
}

// Before its end a streaming list is in no order.
func TestForeignObjectOfAStreamingListIsNoBookmark(t *testing.T) {
	for name, options := range map[string]metav1.ListOptions{"streaming list": {SendInitialEvents: ptr.To(true),
		ResourceVersion: "5"}, "any version": {ResourceVersion: "0"}} {
		events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 2})
		filtered, _ := controller.NewFilteredListWatch(source(nil, events), nil, isLabeled)
		watched, err := cache.ToWatcherWithContext(filtered).WatchWithContext(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		events.Add(labeled("foreign", false))
		events.Stop()
		for event := range watched.ResultChan() {
			t.Errorf("%s: the cache sees %+v", name, event)
		}
	}
}

func TestFilteredListIsRememberedByTheWatch(t *testing.T) {
	events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 20})
	filtered, _ := controller.NewFilteredListWatch(source([]v1.PersistentVolume{*labeled("ours", true),
		*labeled("foreign", false)}, events), nil, isLabeled)
	list, err := cache.ToListerWithContext(filtered).ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if items := list.(*v1.PersistentVolumeList).Items; len(items) != 1 || items[0].Name != "ours" {
		t.Errorf("the list has %v", items)
	}
	watched, err := cache.ToWatcherWithContext(filtered).WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events.Modify(labeled("foreign", false))
	events.Modify(labeled("ours", false))
	if event := <-watched.ResultChan(); event.Type != watch.Deleted || event.Object.(*v1.PersistentVolume).Name != "ours" {
		t.Errorf("the cache sees %+v, want the deletion of the object that is no longer accepted", event)
	}
}

// An object of a list may have been written long before the list.
func TestOnlyVersionsAfterTheListCameByWatch(t *testing.T) {
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
	filtered, cameByWatch := controller.NewFilteredListWatch(listed, nil, isLabeled)
	expect := func(when string, want ...bool) {
		t.Helper()
		for i, version := range []string{"19", "20", "21"} {
			if got := cameByWatch(version); got != want[i] {
				t.Errorf("%s: version %s came by watch: %v, want %v", when, version, got, want[i])
			}
		}
	}
	list := func(options metav1.ListOptions) {
		t.Helper()
		if _, err := cache.ToListerWithContext(filtered).ListWithContext(t.Context(), options); err != nil {
			t.Fatal(err)
		}
	}
	expect("before a list", false, false, false)
	list(metav1.ListOptions{})
	expect("during a list", false, false, false)
	list(metav1.ListOptions{Continue: "more"})
	expect("after the list", false, false, true)
	watched, err := cache.ToWatcherWithContext(filtered).WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true)})
	if err != nil {
		t.Fatal(err)
	}
	events.Add(labeled("ours", true))
	<-watched.ResultChan()
	expect("during a streaming list", false, false, false)
	events.Action(watch.Bookmark, &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "19", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}})
	<-watched.ResultChan()
	expect("after the streaming list", false, true, true)
}

func TestStoppedFilteredWatchEndsWithoutReader(t *testing.T) {
	events := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 20})
	filtered, _ := controller.NewFilteredListWatch(source(nil, events), nil, isLabeled)
	watched, err := cache.ToWatcherWithContext(filtered).WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	events.Add(labeled("a", true))
	events.Add(labeled("b", true))
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
