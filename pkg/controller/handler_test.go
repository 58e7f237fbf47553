package controller_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// startedInformer returns a started informer whose cache has the volumes, and the
// function that stops it.
func startedInformer(t *testing.T,
	volumes ...*v1.PersistentVolume) (*fake.Clientset, cache.SharedIndexInformer, func()) {
	t.Helper()
	client := fake.NewClientset()
	for _, v := range volumes {
		if err := client.Tracker().Add(v); err != nil {
			t.Fatal(err)
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().PersistentVolumes().Informer()
	ctx, stop := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	factory.WaitForCacheSync(ctx.Done())
	return client, informer, func() { stop(); factory.Shutdown() }
}

func TestRegisteredHandlersHaveSeenTheWholeCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, informer, stop := startedInformer(t, volume("a", "1"), volume("b", "1"), volume("c", "1"))
		defer stop()
		var seen, slow atomic.Int32
		err := controller.RegisterHandlers(t.Context(),
			controller.EventHandler{Informer: informer,
				Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(any) { seen.Add(1) }}},
			controller.EventHandler{Informer: informer, Handler: cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
				<-time.After(time.Second)
				slow.Add(1)
			}}},
		)
		if err != nil || seen.Load() != 3 || slow.Load() != 3 {
			t.Errorf("error %v, the handlers were called for %d and %d objects, want 3 and 3", err, seen.Load(), slow.Load())
		}
	})
}

func TestObjectsOfTheCacheAreReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, informer, stop := startedInformer(t, volume("cached", "1"))
		defer stop()
		synctest.Wait() // the fake client loses changes before the watch begins
		var replayed, changed, gone []string
		name := func(names *[]string) func(*v1.PersistentVolume) {
			return func(v *v1.PersistentVolume) { *names = append(*names, v.Name) }
		}
		err := controller.RegisterHandlers(t.Context(), controller.EventHandler{Informer: informer,
			Handler: controller.OnReplay(
				name(&replayed), controller.OnChange(func(_, v *v1.PersistentVolume) { name(&changed)(v) }, name(&gone)),
			)})
		if err != nil {
			t.Fatal(err)
		}
		volumes := client.CoreV1().PersistentVolumes()
		_, created := volumes.Create(t.Context(), volume("new", "2"), metav1.CreateOptions{})
		_, updated := volumes.Update(t.Context(), volume("cached", "3"), metav1.UpdateOptions{})
		if err := errors.Join(created, updated, volumes.Delete(t.Context(), "cached", metav1.DeleteOptions{})); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got, want := fmt.Sprint(replayed, changed, gone), "[cached] [new cached] [cached]"; got != want {
			t.Errorf("replayed, changed, gone: %s, want %s", got, want)
		}
	})
}

func TestHandlersSeeDeletionsAfterRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, informer, stop := startedInformer(t, volume("before", "1"), volume("after", "1"))
		defer stop()
		remove := func(name string) {
			t.Helper()
			if err := client.CoreV1().PersistentVolumes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		synctest.Wait() // the fake client loses changes before the watch begins
		remove("before")
		var added, deleted []string
		err := controller.RegisterHandlers(t.Context(), controller.EventHandler{Informer: informer,
			Handler: controller.OnChange(
				func(_, v *v1.PersistentVolume) { added = append(added, v.Name) },
				func(v *v1.PersistentVolume) { deleted = append(deleted, v.Name) },
			)})
		if err != nil {
			t.Fatal(err)
		}
		remove("after")
		if len(added) != 1 || len(deleted) != 1 || added[0] != "after" || deleted[0] != "after" {
			t.Errorf("added %v, deleted %v, want only the volume after", added, deleted)
		}
	})
}

func TestRegistrationEndsWithTheContext(t *testing.T) {
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Core().V1().PersistentVolumes().Informer()
	ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	err := controller.RegisterHandlers(ctx, controller.EventHandler{Informer: informer,
		Handler: cache.ResourceEventHandlerFuncs{}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("registration with an informer that never starts: %v", err)
	}
}

func TestStoppedInformerRefusesHandlers(t *testing.T) {
	_, informer, stop := startedInformer(t)
	stop()
	if err := controller.RegisterHandlers(t.Context(), controller.EventHandler{Informer: informer,
		Handler: cache.ResourceEventHandlerFuncs{}}); err == nil {
		t.Error("a handler was registered with a stopped informer")
	}
}
