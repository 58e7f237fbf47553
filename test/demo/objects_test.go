package demo

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestEachNewStateIsToldOnce(t *testing.T) {
	client := fake.NewClientset(&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound}})
	var events []Event
	seen, stop, err := watchObjects(t.Context(), client, func(e Event) { events = append(events, e) })
	if err != nil {
		t.Fatal(err)
	}
	claims := client.CoreV1().PersistentVolumeClaims(namespace)
	created, err := claims.Create(t.Context(), newClaim("demo"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	awaitOrFail(t, seen, "the claim is there", func() bool { return seen.claim("demo") != nil && seen.volume("a") != nil })
	created.Labels = map[string]string{"nothing": "new"}
	if _, err := claims.Update(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := claims.Delete(t.Context(), "demo", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitOrFail(t, seen, "the end of the claim is reported", func() bool {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		return len(events) >= 3
	})
	stop()
	got := whats(events)
	slices.Sort(got) // volumes and claims come from watches of their own
	want := []string{"PV a: Bound, no finalizers", "PVC demo: gone from the API", "PVC demo: no finalizers"}
	if !slices.Equal(got, want) {
		t.Errorf("got events %q, want each state once: %q", got, want)
	}
}

// awaitOrFail waits until holds returns true.
func awaitOrFail(t *testing.T, seen *objects, what string, holds func() bool) {
	t.Helper()
	if err := seen.await(t.Context(), what, holds); err != nil {
		t.Fatal(err)
	}
}

func TestAwaitNamesConditionAndCause(t *testing.T) {
	died := errors.New("run provisioner: signal: killed")
	ctx, fail := context.WithCancelCause(t.Context())
	seen, stop, err := watchObjects(ctx, fake.NewClientset(), func(Event) {})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	fail(died)
	err = seen.await(ctx, "PVC demo is bound", func() bool { return false })
	if !errors.Is(err, died) || !strings.HasPrefix(err.Error(), "wait until PVC demo is bound: ") {
		t.Errorf("await = %v, want what was waited for, and %v", err, died)
	}
}
