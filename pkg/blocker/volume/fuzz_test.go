package volume

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// gateValue returns the value of the gate in the value of --feature-gates, as
// k8s.io/component-base reads it. valid: the program starts with this value.
func gateValue(flag string) (on, set, valid bool) {
	for _, pair := range strings.Split(flag, ",") {
		if pair == "" {
			continue
		}
		name, text, ok := strings.Cut(pair, "=")
		value, err := strconv.ParseBool(strings.TrimSpace(text))
		if !ok || err != nil {
			return false, false, false
		}
		if strings.TrimSpace(name) == gateName {
			on, set = value, true
		}
	}
	return on, set, true
}

// The gate of a command line is that of component-base, in one or two words, and a
// provisioner with the gate off never has the finalizer.
func FuzzFeatureGate(f *testing.F) {
	f.Add("Topology=true,HonorPVReclaimPolicy=false", "r/csi-provisioner:v5.0.1")
	f.Add("HonorPVReclaimPolicy = 1", "r:5000/csi-provisioner:v3.1.0@sha256:01")
	f.Add("HonorPVReclaimPolicy=T,HonorPVReclaimPolicy=0,", "r/provisioner:99999999999999999999.1")
	f.Add("=,", "@:/")
	f.Fuzz(func(t *testing.T, flag, image string) {
		one := Program{Image: image, Args: []string{"/csi-provisioner", "--feature-gates=" + flag}}
		two := Program{Image: image, Args: []string{"/csi-provisioner", "--feature-gates", flag, "--v=5"}}
		on, set, valid := gateValue(flag)
		for _, program := range []Program{one, two} {
			gotOn, gotSet := program.Gate()
			if valid && flag != "" && (gotOn != on || gotSet != set) {
				t.Errorf("gate of %q = %v, set %v, want %v, set %v", program.Args, gotOn, gotSet, on, set)
			}
			feature := FeatureOf(program)
			if gotSet && !gotOn && feature != FeatureOff {
				t.Errorf("feature of %q without the gate = %v", image, feature)
			}
			if !slices.Contains([]Feature{FeatureUnknown, FeatureOn, FeatureOff, FeatureOffMaybe},
				FeatureOfAll([]Program{program, one})) {
				t.Errorf("feature of %q = %v", image, FeatureOfAll([]Program{program, one}))
			}
		}
		if major, minor, known := one.Version(); known && (major < 0 || minor < 0 || !strings.Contains(image, ":")) {
			t.Errorf("version of %q = %d.%d", image, major, minor)
		}
		if IsRefusal(flag+"context canceled") || SaysPluginMissing(flag) && !strings.Contains(flag, "plugin") &&
			!strings.Contains(flag, "deleter") {
			t.Errorf("message %q is taken for a refusal", flag)
		}
	})
}
