package manifests

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The chart and the manifests run garbage-collector alike.
func TestChartRunsCollectorAsManifests(t *testing.T) {
	objects, inChart := kustomized(t, "garbage-collector"), templated(t, collectorOn)
	want, got := podsOf(t, []*unstructured.Unstructured{find(t, objects, "Deployment", "garbage-collector")})[0], podsOf(t, []*unstructured.Unstructured{find(t, inChart, "Deployment", "garbage-collector")})[0]
	want.Affinity, got.Affinity = nil, nil // it selects pods of the release
	want.Containers[0].Image = got.Containers[0].Image
	want.Containers[0].Args = append(want.Containers[0].Args, "--v=2")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods of the manifests (-) and of the chart (+):\n%s", diff)
	}
	unavailable := func(in []*unstructured.Unstructured) any {
		value, _, _ := unstructured.NestedFieldNoCopy(find(t, in, "PodDisruptionBudget", "garbage-collector").Object, "spec", "maxUnavailable")
		return value
	}
	if diff := cmp.Diff(unavailable(objects), unavailable(inChart)); diff != "" {
		t.Errorf("disruption budgets:\n%s", diff)
	}
}

func TestChartPassesFlagsToCollector(t *testing.T) {
	objects := templated(t, values{"garbageCollector": values{"enabled": true, "dryRun": true, "securePort": 20271, "extraArgs": []any{"--unreadable-kind-orphan-timeout=1h"}}})
	container := podsOf(t, []*unstructured.Unstructured{find(t, objects, "Deployment", "garbage-collector")})[0].Containers[0]
	want := []string{"--leader-elect=true", "--secure-port=20271", "--logging-format=json", "--v=2", "--dry-run", "--unreadable-kind-orphan-timeout=1h"}
	if !slices.Equal(container.Args, want) || container.Ports[0].ContainerPort != 20271 {
		t.Errorf("arguments %v, port %d", container.Args, container.Ports[0].ContainerPort)
	}
}

func TestNotesSayHowToSwitchCollectors(t *testing.T) {
	notes := notesOf(t, collectorOn)
	if !strings.Contains(notes, "-garbage-collector-controller") || strings.Contains(notes, "It deletes nothing") {
		t.Errorf("notes:\n%s", notes)
	}
	if notes := notesOf(t, values{"garbageCollector": values{"enabled": true, "dryRun": true}}); !strings.Contains(notes, "It deletes nothing") {
		t.Errorf("notes of a dry run:\n%s", notes)
	}
	if notes := notesOf(t, values{}); strings.Contains(notes, "garbage-collector") {
		t.Errorf("notes without the collector:\n%s", notes)
	}
}
