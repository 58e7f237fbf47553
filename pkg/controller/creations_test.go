package controller_test

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// claimOf returns a claim with the UID, and with a volume once it is bound.
func claimOf(uid types.UID, bound bool) *v1.PersistentVolumeClaim {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: string(uid), UID: uid}}
	if bound {
		claim.Spec.VolumeName = "volume"
	}
	return claim
}

func isBound(object metav1.Object) bool {
	claim, ok := object.(*v1.PersistentVolumeClaim)
	return ok && claim.Spec.VolumeName != ""
}

// claimSource is a source of claims whose watch has the events.
func claimSource(events ...watch.Event) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &v1.PersistentVolumeClaimList{Items: []v1.PersistentVolumeClaim{*claimOf("listed", false)}}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			watched := watch.NewFakeWithChanSize(len(events), false)
			for _, event := range events {
				watched.Action(event.Type, event.Object)
			}
			watched.Stop()
			return watched, nil
		},
	}
}

func TestOnlyCreationsOfAWatchAreSeen(t *testing.T) {
	end := claimOf("", false)
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	added, boundLater := watch.Event{Type: watch.Added, Object: claimOf("added", false)},
		watch.Event{Type: watch.Modified, Object: claimOf("added", true)}
	for name, tc := range map[string]struct {
		options metav1.ListOptions
		events  []watch.Event
		seen    bool
	}{
		"created after the list": {metav1.ListOptions{ResourceVersion: "7"}, []watch.Event{added}, true},
		"changed after the list": {metav1.ListOptions{ResourceVersion: "7"}, []watch.Event{{Type: watch.Modified, Object: claimOf("added", false)}}, false},
		"created, then changed": {metav1.ListOptions{ResourceVersion: "7"},
			[]watch.Event{added, {Type: watch.Modified, Object: claimOf("added", false)}}, true},
		"created, then bound": {metav1.ListOptions{ResourceVersion: "7"}, []watch.Event{added, boundLater}, false},
		"created, then deleted": {metav1.ListOptions{ResourceVersion: "7"},
			[]watch.Event{added, {Type: watch.Deleted, Object: claimOf("added", false)}}, false},
		"created before the watch":     {metav1.ListOptions{ResourceVersion: "0"}, []watch.Event{added}, false},
		"in a streaming list":          {metav1.ListOptions{SendInitialEvents: ptr.To(true)}, []watch.Event{added, {Type: watch.Bookmark, Object: end}}, false},
		"created after a stream":       {metav1.ListOptions{SendInitialEvents: ptr.To(true)}, []watch.Event{{Type: watch.Bookmark, Object: end}, added}, true},
		"the watch ends with an error": {metav1.ListOptions{ResourceVersion: "7"}, []watch.Event{{Type: watch.Error, Object: &metav1.Status{}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			creations := controller.NewCreations(isBound)
			tracked := creations.Track(claimSource(tc.events...))
			watched, err := tracked.WatchFuncWithContext(t.Context(), tc.options)
			if err != nil {
				t.Fatal(err)
			}
			passed := 0
			for range watched.ResultChan() {
				passed++
			}
			if seen := creations.Has("added"); seen != tc.seen || passed != len(tc.events) {
				t.Errorf("seen: %v, want %v; %d events of %d", seen, tc.seen, passed, len(tc.events))
			}
		})
	}
}

func TestListForgetsCreations(t *testing.T) {
	creations := controller.NewCreations(isBound)
	creations.Observe(watch.Event{Type: watch.Added, Object: claimOf("added", false)})
	if _, err := creations.Track(claimSource()).ListWithContextFunc(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if creations.Has("added") || creations.Has("listed") {
		t.Error("a claim counts as created after a list")
	}
	if (*controller.Creations)(nil).Has("added") {
		t.Error("without creations a claim counts as created")
	}
}
