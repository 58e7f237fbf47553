package garbage

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// With --unreadable-kind-orphan-timeout a deletion with the policy Orphan does not wait for ever for a kind that
// cannot be listed. The orphans that were seen stay.
func TestOrphaningProceedsWithoutUnreadableKind(t *testing.T) {
	t.Parallel()
	r := start(t, ours, true, "--unreadable-kind-timeout=1s", "--unreadable-kind-orphan-timeout=8s")
	w := r.world(t)
	owner := w.create(configMaps, "orphaning")
	w.create(serviceAccounts, "orphan", ownedBy(reference(owner)))
	w.gate.hold("secrets")
	w.gate.fail("secrets", true)
	began := time.Now()
	w.delete(configMaps, "orphaning", orphan)
	w.awaitOwners(serviceAccounts, "orphan")
	w.awaitGone(configMaps, "orphaning")
	if took := time.Since(began); took < 8*time.Second {
		t.Errorf("the owner is gone after %v", took)
	}
	w.await("an event names the kind", func() bool {
		events, err := w.typed.CoreV1().Events(w.namespace).List(w.ctx,
			metav1.ListOptions{FieldSelector: "reason=DependentsUnread"})
		must(w.t, err, "list events")
		return len(events.Items) == 1 && strings.Contains(events.Items[0].Message, "may be deleted") &&
			strings.Contains(events.Items[0].Message, "secrets")
	})
	if !w.logs("Kinds cannot be read") {
		t.Error("the log does not name the kind")
	}
	if o := w.get(serviceAccounts, "orphan"); o == nil || o.GetDeletionTimestamp() != nil {
		t.Error("the orphan was deleted")
	}
}
