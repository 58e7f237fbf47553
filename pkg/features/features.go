// Package features holds the feature gates that both programs share.
package features

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/component-base/featuregate"
)

// HonorPVReclaimPolicy applies the reclaim policy of a volume in either order of deletion
// of volume and claim (KEP-2644). Off is the behavior before the KEP: a volume that is
// deleted before its claim leaks in the storage system. The gate is GA as upstream, so that
// AllBeta does not change it, but it can be switched off here.
const HonorPVReclaimPolicy featuregate.Feature = "HonorPVReclaimPolicy"

// NewGate returns a feature gate with the defaults. Every program has its own.
func NewGate() (featuregate.MutableFeatureGate, error) {
	gate := featuregate.NewFeatureGate()
	specs := map[featuregate.Feature]featuregate.FeatureSpec{
		HonorPVReclaimPolicy: {Default: true, PreRelease: featuregate.GA},
	}
	if err := gate.Add(specs); err != nil {
		return nil, fmt.Errorf("add feature gates: %w", err)
	}
	return gate, nil
}

// Known describes every gate, sorted by name. The library's own list lacks the GA gates,
// which are accepted too.
func Known(gate featuregate.MutableFeatureGate) []string {
	var known []string
	for name, spec := range gate.GetAll() {
		stage := string(spec.PreRelease)
		if spec.PreRelease == featuregate.GA {
			stage = "GA"
		}
		known = append(known, fmt.Sprintf("%s=true|false (%s - default=%t)", name, stage, spec.Default))
	}
	slices.Sort(known)
	return known
}

// unserved are gates of upstream that change what our programs replace, and why they are refused.
var unserved = map[string]string{
	"PersistentVolumeClaimUnusedSinceTime": "this program does not keep the condition Unused of claims (KEP-5541); read docs/operate.md about it, and remove the gate",
}

// Set applies the values of --feature-gates. The error for an unknown gate lists the known
// gates.
func Set(gate featuregate.MutableFeatureGate, values map[string]bool) error {
	for name := range values {
		if reason, refused := unserved[name]; refused {
			return fmt.Errorf("--feature-gates: %s is refused: %s", name, reason)
		}
		if _, known := gate.GetAll()[featuregate.Feature(name)]; !known && name != "AllAlpha" && name != "AllBeta" {
			return fmt.Errorf("--feature-gates: unknown gate %q; known: %s", name, strings.Join(Known(gate), ", "))
		}
	}
	if err := gate.SetFromMap(values); err != nil {
		return fmt.Errorf("--feature-gates: %w", err)
	}
	return nil
}
