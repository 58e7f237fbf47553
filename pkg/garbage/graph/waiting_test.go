package graph_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOneOwnerSpeaksForCycle(t *testing.T) {
	w := newWorld()
	for name, owner := range map[string]string{"b": "c", "c": "a", "a": "b", "below": "c", "self": "self", "lone": "", "under": "lone"} {
		options := []option{deleted(metav1.FinalizerDeleteDependents)}
		if owner != "" {
			options = append(options, ownedBy(pods, owner))
		}
		w.observe(pods, name, options...)
	}
	var tops []string
	for _, owner := range w.Waiting() {
		if owner.Top {
			tops = append(tops, owner.Name)
		}
	}
	if want := []string{"a", "lone", "self"}; !slices.Equal(tops, want) {
		t.Errorf("got %v, want %v", tops, want)
	}
}
