package features_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"

	"github.com/exeunt-io/exeunt/pkg/features"
)

func TestGateIsOnAndCanBeSwitchedOff(t *testing.T) {
	gate, err := features.NewGate()
	if err != nil || !gate.Enabled(features.HonorPVReclaimPolicy) {
		t.Fatalf("NewGate: %v, enabled %v", err, gate.Enabled(features.HonorPVReclaimPolicy))
	}
	if err := features.Set(gate, map[string]bool{"HonorPVReclaimPolicy": false}); err != nil {
		t.Fatal(err)
	}
	if gate.Enabled(features.HonorPVReclaimPolicy) {
		t.Error("the gate is still on")
	}
}

func TestAllBetaDoesNotSwitchTheGateOff(t *testing.T) {
	for name, values := range map[string]map[string]bool{
		"off":                {"AllBeta": false},
		"off, with AllAlpha": {"AllBeta": false, "AllAlpha": false},
	} {
		t.Run(name, func(t *testing.T) {
			gate, err := features.NewGate()
			if err != nil {
				t.Fatal(err)
			}
			if err := features.Set(gate, values); err != nil || !gate.Enabled(features.HonorPVReclaimPolicy) {
				t.Errorf("Set(%v) = %v, enabled %t", values, err, gate.Enabled(features.HonorPVReclaimPolicy))
			}
		})
	}
}

func TestErrorForUnknownGateListsKnownGates(t *testing.T) {
	gate, err := features.NewGate()
	if err != nil {
		t.Fatal(err)
	}
	err = features.Set(gate, map[string]bool{"HonourPVReclaimPolicy": true})
	if err == nil || !strings.Contains(err.Error(), "HonourPVReclaimPolicy") ||
		!strings.Contains(err.Error(), "HonorPVReclaimPolicy=") {
		t.Errorf("Set = %v", err)
	}
}

func TestUnservedGateSaysWhatToDo(t *testing.T) {
	gate, err := features.NewGate()
	if err != nil {
		t.Fatal(err)
	}
	err = features.Set(gate, map[string]bool{"PersistentVolumeClaimUnusedSinceTime": false})
	if err == nil || !strings.Contains(err.Error(), "Unused") || !strings.Contains(err.Error(), "docs/operate.md") {
		t.Errorf("Set = %v", err)
	}
}

func TestKnownListsEveryGate(t *testing.T) {
	gate, err := features.NewGate()
	if err != nil {
		t.Fatal(err)
	}
	if err := gate.Add(map[featuregate.Feature]featuregate.FeatureSpec{"Done": {Default: true, PreRelease: featuregate.GA},
		"New": {PreRelease: featuregate.Alpha}}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"AllAlpha=true|false (ALPHA - default=false)", "AllBeta=true|false (BETA - default=false)",
		"Done=true|false (GA - default=true)",
		"HonorPVReclaimPolicy=true|false (GA - default=true)", "New=true|false (ALPHA - default=false)",
	}
	if known := features.Known(gate); !slices.Equal(known, want) {
		t.Errorf("Known = %q, want %q", known, want)
	}
	if err := features.Set(gate, map[string]bool{"Nope": true}); err == nil ||
		!strings.Contains(err.Error(), "Done=true|false (GA") {
		t.Errorf("Set = %v", err)
	}
}
