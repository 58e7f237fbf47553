package garbage

import (
	"os"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestKindThatCannotBeListed(t *testing.T) {
	t.Parallel()
	r := start(t, ours, true, "--unreadable-kind-timeout=2s")
	w := r.world(t)
	w.gate.hold("secrets")
	w.gate.fail("secrets", true)
	owner := w.create(configMaps, "orphaning")
	w.create(secrets, "orphan", ownedBy(reference(owner)))
	w.create(configMaps, "waiting")
	w.delete(configMaps, "orphaning", orphan)
	w.delete(configMaps, "waiting", foreground)
	w.awaitGone(configMaps, "waiting")
	w.await("an event names the kind", func() bool {
		events, err := w.typed.CoreV1().Events(w.namespace).List(w.ctx,
			metav1.ListOptions{FieldSelector: "reason=DependentsUnread"})
		must(w.t, err, "list events")
		return len(events.Items) > 0 && strings.Contains(events.Items[0].Message, "secrets")
	})
	if w.get(configMaps, "orphaning") == nil {
		t.Error("the owner is gone although its orphans cannot be read")
	}
	w.gate.fail("secrets", false)
	w.awaitGone(configMaps, "orphaning")
	w.awaitOwners(secrets, "orphan")
}

func TestKillAmidDependents(t *testing.T) {
	t.Parallel()
	dependents := number(t, "EXEUNT_GC_DEPENDENTS", 1000)
	r := start(t, ours, false)
	for _, policy := range []metav1.DeletionPropagation{foreground, orphan} {
		w := r.world(t)
		owner := w.create(configMaps, "owner")
		for range dependents {
			w.create(secrets, "", ownedBy(reference(owner)),
				func(o *unstructured.Unstructured) { o.SetGenerateName("dependent-") })
		}
		w.delete(configMaps, "owner", policy)
		w.await("some dependents are done", func() bool { return w.owned(owner.GetName()) < dependents*9/10 })
		r.kill(t)
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

// number returns the value of the environment variable, or the default.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	value, err := strconv.Atoi(text)
	must(t, err, "parse "+variable)
	return value
}

func TestDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	r := start(t, ours, false)
	r.stop(t)
	w := r.world(t)
	w.create(secrets, "garbage", w.absentOwner())
	r.flags = []string{"--dry-run"}
	r.launch(t)
	w.await("the log names the garbage",
		func() bool { return w.logs("Dry run: no write") && w.logs(w.namespace+"/garbage") })
	if o := w.get(secrets, "garbage"); o == nil || o.GetDeletionTimestamp() != nil {
		t.Error("the garbage was deleted")
	}
}
