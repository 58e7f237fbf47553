package integration

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// controller removes its finalizers by PUT of what its informer has, as most controllers do. It reaches the API server
// through a load balancer.
type controller struct {
	kind
	front    *front
	informer cache.SharedIndexInformer
}

// newController starts the informer of a controller, at one of the API servers.
func newController(k kind, first *server) *controller {
	k.t.Helper()
	f, s := newFront(k.t, first)
	client, err := dynamic.NewForConfigAndClient(&rest.Config{Host: s.url, QPS: -1}, s.client)
	if err != nil {
		k.t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: k.group, Version: "v1", Resource: "machines"}
	informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, "default", 0, nil, nil).Informer()
	done := make(chan struct{})
	go func() {
		informer.Run(k.t.Context().Done())
		close(done)
	}()
	k.t.Cleanup(func() { <-done })
	c := &controller{k.at(s), f, informer}
	wait(k.t, func() error {
		if !informer.HasSynced() {
			return fmt.Errorf("the informer has not synced")
		}
		return nil
	})
	return c
}

// cached returns the objects of the informer.
func (c *controller) cached() []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, item := range c.informer.GetStore().List() {
		if object, ok := item.(*unstructured.Unstructured); ok {
			found = append(found, object)
		}
	}
	return found
}

// awaitCache waits until the informer has as many objects that are being deleted with a grace period in the field, or
// with 0.
func (c *controller) awaitCache(count int, inField bool) {
	c.t.Helper()
	wait(c.t, func() error {
		found := 0
		for _, object := range c.cached() {
			if deletionOf(object).field > 0 == inField && object.GetDeletionTimestamp() != nil {
				found++
			}
		}
		if found != count || len(c.cached()) != count {
			return fmt.Errorf("the informer has %d objects, %d of them in grace, want %d", len(c.cached()), found, count)
		}
		return nil
	})
}

// moveTo sends the controller to another API server, and waits until its informer has resumed its watch there. The
// informer does not list again: it has the same copies as before.
func (c *controller) moveTo(s *server) {
	c.t.Helper()
	c.front.use(c.t, s)
	wait(c.t, func() error {
		watches, lists := c.front.counted()
		if lists > 0 {
			c.t.Fatalf("the informer listed %d times instead of resuming its watch", lists)
		}
		if watches == 0 {
			return fmt.Errorf("the informer has not resumed its watch")
		}
		return nil
	})
}

// remove writes each object of the informer without a finalizer, by PUT. It returns how often each status was answered.
func (c *controller) remove(finalizer string) map[int]int {
	c.t.Helper()
	codes := map[int]int{}
	for _, object := range c.cached() {
		written := object.DeepCopy()
		kept := slices.DeleteFunc(written.GetFinalizers(), func(other string) bool { return other == finalizer })
		if len(kept) == len(object.GetFinalizers()) {
			continue
		}
		written.SetFinalizers(kept)
		got := c.put(object.GetName(), written)
		codes[got.code]++
		if got.code == http.StatusUnprocessableEntity && !strings.Contains(got.message(), "field is immutable") {
			c.t.Errorf("%s: %s", object.GetName(), got.text)
		}
	}
	return codes
}

// removeAll writes until each write has passed, as a controller that retries.
func (c *controller) removeAll(finalizer string) {
	c.t.Helper()
	wait(c.t, func() error {
		if codes := c.remove(finalizer); len(codes) > 0 {
			return fmt.Errorf("%s is still removed: %v", finalizer, codes)
		}
		return nil
	})
}

// rollback runs kubectl exeunt rollback at the stock API server, which changes each object in its grace period once. It
// returns of how many objects of the kind the annotation has the other spelling.
func (k kind) rollback() int {
	k.t.Helper()
	output, _ := exeunt(k.t, "stock", "rollback", "--deadlines-only", "--confirm") // other tests leave objects of their own
	changed := 0
	for _, object := range k.list().Items {
		if strings.Contains(object.GetAnnotations()[deadline.Annotation], "+00:00") {
			changed++
		}
	}
	k.t.Logf("%d objects changed, the command ends with ...%s", changed, output[max(0, len(output)-300):])
	return changed
}

// grantMany creates objects with finalizers, and deletes them with a grace period. It returns their deletions by name.
func (k kind) grantMany(count, seconds int, finalizers ...string) map[string]deletion {
	k.t.Helper()
	granted := map[string]deletion{}
	for i := range count {
		name := fmt.Sprintf("a-%d", i)
		k.create(name, finalizers...)
		_, granted[name] = k.graceful(name, seconds)
	}
	return granted
}

// deadlinesStay wants the deadlines that were granted, whatever the API server calls them.
func (k kind) deadlinesStay(granted map[string]deletion) {
	k.t.Helper()
	list := k.list().Items
	for _, object := range list {
		want := granted[object.GetName()]
		if got := deletionOf(&object); got.kind != want.kind || !got.end.Equal(want.end) {
			k.t.Errorf("%s: %+v, want %+v", object.GetName(), got, want)
		}
	}
	if len(list) != len(granted) {
		k.t.Errorf("%d objects, want %d", len(list), len(granted))
	}
}

// noneLeft wants no object at the API server and none in etcd.
func (k kind) noneLeft() {
	k.t.Helper()
	found, err := k.etcd.Get(k.t.Context(), "/registry/"+k.group+"/", withPrefix)
	if err != nil {
		k.t.Fatal(err)
	}
	if list := k.list().Items; len(list)+len(found.Kvs) > 0 {
		k.t.Errorf("%d objects are left, %d in etcd", len(list), len(found.Kvs))
	}
}

// session logs a step with what an object looks like at each API server.
func session(t *testing.T, step string, name string, at map[string]kind) {
	t.Helper()
	t.Log(step)
	for _, server := range []string{"ours", "stock"} {
		got := at[server].get(name)
		if got.code != http.StatusOK {
			t.Logf("    %-6s %s: %d", server, name, got.code)
			continue
		}
		metadata, _, _ := unstructured.NestedMap(got.body.Object, "metadata")
		t.Logf("    %-6s %s: deletionTimestamp %v, deletionGracePeriodSeconds %v, window %v, finalizers %v", server, name,
			metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"],
			got.body.GetAnnotations()[deadline.Annotation], metadata["finalizers"])
	}
}
