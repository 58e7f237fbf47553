package storage

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
)

func TestErrorInGracePeriodIsOfDeletion(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	inGrace := &unstructured.Unstructured{Object: map[string]any{}}
	inGrace.SetDeletionTimestamp(ptr.To(metav1.NewTime(now.Add(4 * time.Minute))))
	inGrace.SetDeletionGracePeriodSeconds(ptr.To[int64](300))
	living := &unstructured.Unstructured{Object: map[string]any{}}
	for name, tc := range map[string]struct {
		content *unstructured.Unstructured
		ago     time.Duration
		want    bool
	}{
		"before the request":     {inGrace, 2 * time.Minute, true},
		"after the request":      {inGrace, 0, false},
		"content is not deleted": {living, 0, false},
	} {
		if got := isCreationError(tc.content, now.Add(-tc.ago)); got != tc.want {
			t.Errorf("%s: the error is of the creation: %t", name, got)
		}
	}
}
