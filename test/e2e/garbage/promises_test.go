package garbage

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// TestPromises holds back watches: dependents that were committed before the deletion of their
// owner are not seen. Upstream's controller releases the owner, and deletes what the user
// wanted to keep.
func TestPromises(t *testing.T) {
	t.Parallel()
	for name, scenario := range promises {
		t.Run(name, func(t *testing.T) {
			r := start(t, ours, true)
			scenario(r.world(t), true)
		})
	}
}

// TestStockPromises shows that upstream's controller breaks each of them.
func TestStockPromises(t *testing.T) {
	t.Parallel()
	for name, scenario := range promises {
		t.Run(name, func(t *testing.T) {
			r := start(t, stock, true)
			scenario(r.world(t), false)
		})
	}
}

// promises are scenarios; kept says whether the collector keeps the promise.
var promises = map[string]func(w *world, kept bool){
	"an owner outlives dependents that the watch has not delivered": func(w *world, kept bool) {
		w.proxy.gate.hold("secrets")
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.delete(configMaps, "owner", foreground)
		w.awaitGone(configMaps, "owner")
		if gone := w.get(secrets, "dependent") == nil; gone != kept {
			w.t.Errorf("the dependent was gone before its owner: %v", gone)
		}
	},
	"orphans that the watch has not delivered stay": func(w *world, kept bool) {
		w.proxy.gate.hold("secrets")
		owner := w.create(configMaps, "owner")
		w.create(secrets, "dependent", ownedBy(reference(owner)))
		w.delete(configMaps, "owner", orphan)
		w.awaitGone(configMaps, "owner")
		w.proxy.gate.open()
		if !kept {
			w.awaitGone(secrets, "dependent")
			return
		}
		w.awaitOwners(secrets, "dependent")
		w.expectKept(secrets, "dependent")
	},
	"an owner outlives dependents of a kind that is new": func(w *world, kept bool) {
		w.proxy.gate.hold("customresourcedefinitions")
		gadgets := w.define("Gadget", "gadgets")
		owner := w.create(configMaps, "owner")
		child := w.create(gadgets, "child", ownedBy(reference(owner)))
		w.create(gadgets, "grandchild", ownedBy(reference(child)))
		w.delete(configMaps, "owner", foreground)
		w.awaitGone(configMaps, "owner")
		if gone := w.get(gadgets, "child") == nil && w.get(gadgets, "grandchild") == nil; gone != kept {
			w.t.Errorf("the dependents were gone before their owner: %v", gone)
		}
	},
}

// define defines a kind, and waits until its objects can be created.
func (w *world) define(name, plural string) kind {
	w.t.Helper()
	must(w.t, sandbox.ApplyYAML(w.ctx, w.plane.RESTConfig(), []byte(definition(name, plural))), "define "+name)
	defined := kind{schema.GroupVersionResource{Group: "e2e.exeunt.io", Version: "v1", Resource: plural}, name, true}
	w.await("the kind is served", func() bool {
		_, err := w.in(defined).List(w.ctx, metav1.ListOptions{})
		return err == nil
	})
	return defined
}

func TestKindThatCannotBeListed(t *testing.T) {
	t.Parallel()
	r := start(t, ours, true, "--unreadable-kind-timeout=2s")
	w := r.world(t)
	w.proxy.gate.hold("secrets")
	w.proxy.gate.fail("secrets", true)
	owner := w.create(configMaps, "orphaning")
	w.create(secrets, "orphan", ownedBy(reference(owner)))
	w.create(configMaps, "waiting")
	w.delete(configMaps, "orphaning", orphan)
	w.delete(configMaps, "waiting", foreground)
	w.awaitGone(configMaps, "waiting")
	w.await("an event names the kind", func() bool {
		events, err := w.typed.CoreV1().Events(w.namespace).List(w.ctx, metav1.ListOptions{FieldSelector: "reason=DependentsUnread"})
		must(w.t, err, "list events")
		return len(events.Items) > 0 && strings.Contains(events.Items[0].Message, "secrets")
	})
	if w.get(configMaps, "orphaning") == nil {
		t.Error("the owner is gone although its orphans cannot be read")
	}
	w.proxy.gate.fail("secrets", false)
	w.awaitGone(configMaps, "orphaning")
	w.awaitOwners(secrets, "orphan")
}

func TestKillAmidDependents(t *testing.T) {
	t.Parallel()
	const dependents = 1000
	r := start(t, ours, false)
	for _, policy := range []metav1.DeletionPropagation{foreground, orphan} {
		w := r.world(t)
		owner := w.create(configMaps, "owner")
		for range dependents {
			w.create(secrets, "", ownedBy(reference(owner)), func(o *unstructured.Unstructured) { o.SetGenerateName("dependent-") })
		}
		w.delete(configMaps, "owner", policy)
		w.await("some dependents are done", func() bool { return w.owned(owner.GetName()) < dependents*9/10 })
		must(t, r.process.Kill(), "kill collector")
		<-r.process.Done()
		left := w.owned("owner")
		r.run(t)
		w.awaitGone(configMaps, "owner")
		if got := w.owned("owner"); got > 0 {
			t.Errorf("%s: %d dependents refer to the owner that is gone", policy, got)
		}
		if got := len(w.list(secrets)); policy == orphan && got != dependents || policy == foreground && got != 0 {
			t.Errorf("%s: %d dependents remain", policy, got)
		}
		t.Logf("%s: killed with %d of %d dependents left", policy, left, dependents)
	}
}

// owned returns the number of secrets with the owner.
func (w *world) owned(owner string) int {
	count := 0
	for _, o := range w.list(secrets) {
		for _, r := range o.GetOwnerReferences() {
			if r.Name == owner {
				count++
			}
		}
	}
	return count
}

func (w *world) list(k kind) []unstructured.Unstructured {
	w.t.Helper()
	list, err := w.in(k).List(w.ctx, metav1.ListOptions{})
	must(w.t, err, "list "+k.Resource)
	return list.Items
}

func TestDefinitionDeletedWhileItsObjectsBlock(t *testing.T) {
	t.Parallel()
	w := start(t, ours, false).world(t)
	gadgets := w.define("Gadget", "gadgets")
	owner := w.create(configMaps, "owner")
	w.create(gadgets, "dependent", ownedBy(reference(owner)), finalizers(foreign))
	w.delete(configMaps, "owner", foreground)
	w.awaitDeleted(gadgets, "dependent")
	must(t, w.client.Resource(crds.GroupVersionResource).Delete(w.ctx, "gadgets.e2e.exeunt.io", metav1.DeleteOptions{}), "delete definition")
	if w.get(configMaps, "owner") == nil {
		t.Error("the owner is gone before its dependent")
	}
	w.setFinalizers(gadgets, "dependent")
	w.awaitGone(configMaps, "owner")
}

func TestDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	r := start(t, ours, false)
	r.stop(t)
	w := r.world(t)
	w.create(secrets, "garbage", w.absentOwner())
	r.flags = []string{"--dry-run"}
	r.launch(t)
	w.await("the log names the garbage", func() bool { return w.logs("Dry run: no write") && w.logs(w.namespace+"/garbage") })
	if o := w.get(secrets, "garbage"); o == nil || o.GetDeletionTimestamp() != nil {
		t.Error("the garbage was deleted")
	}
}
