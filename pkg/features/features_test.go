package features_test

import (
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/features"
)

func TestTheGateIsOnByDefaultAndCanBeSwitchedOff(t *testing.T) {
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

func TestAnUnknownGateIsRefusedWithTheKnownOnes(t *testing.T) {
	gate, err := features.NewGate()
	if err != nil {
		t.Fatal(err)
	}
	err = features.Set(gate, map[string]bool{"HonourPVReclaimPolicy": true})
	if err == nil || !strings.Contains(err.Error(), "HonourPVReclaimPolicy") || !strings.Contains(err.Error(), "HonorPVReclaimPolicy=") {
		t.Errorf("Set = %v", err)
	}
}
