package identity

import (
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestEventSourceNamesDriverHostAndProcess(t *testing.T) {
	form := regexp.MustCompile(`^csi\.example\.com_node-1_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	source := EventSource("csi.example.com", "node-1")
	if !form.MatchString(source) {
		t.Errorf("EventSource = %q, want a match for %s", source, form)
	}
	if again := EventSource("csi.example.com", "node-1"); again == source {
		t.Errorf("two processes have the event source %q", source)
	}
}

func TestLeaseEventSourceNamesDriverAndHost(t *testing.T) {
	if source := LeaseEventSource("example.com/csi", "node-1"); source != "example.com-csi/node-1" {
		t.Errorf("LeaseEventSource = %q", source)
	}
}

func TestLeaseNameIsUpstreams(t *testing.T) {
	for driver, want := range map[string]string{
		"csimock.exeunt.io": "csimock-exeunt-io",
		"ebs.csi.aws.com":   "ebs-csi-aws-com",
		"example.com/nfs":   "example-com-nfs",
		"Acme.Example.COM":  "acme-example-com",
		"Driver_1":          "driver-1",
		"ends-with.":        "ends-with-x",
	} {
		if got := LeaseName(driver); got != want {
			t.Errorf("LeaseName(%q) = %q, want %q", driver, got, want)
		}
		if faults := validation.IsDNS1123Subdomain(LeaseName(driver)); len(faults) > 0 {
			t.Errorf("LeaseName(%q): %v", driver, faults)
		}
	}
}

func TestCreatorNamesDriverAndServedNode(t *testing.T) {
	for name, tc := range map[string]struct{ node, form string }{
		"all nodes": {"", `^[0-9]+-[0-9]+-csi\.example\.com$`},
		"one node":  {"node-1", `^[0-9]+-[0-9]+-csi\.example\.com-node-1$`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Creator("csi.example.com", tc.node); !regexp.MustCompile(tc.form).MatchString(got) {
				t.Errorf("Creator = %q, want a match for %s", got, tc.form)
			}
		})
	}
}
