package main

import (
	"regexp"
	"testing"
)

func TestEventSourceNamesDriverHostAndProcess(t *testing.T) {
	form := regexp.MustCompile(`^csi\.example\.com_node-1_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	source := eventSource("csi.example.com", "node-1")
	if !form.MatchString(source) {
		t.Errorf("eventSource = %q, want a match for %s", source, form)
	}
	if again := eventSource("csi.example.com", "node-1"); again == source {
		t.Errorf("two processes have the event source %q", source)
	}
}

func TestLeaseEventSourceNamesDriverAndHost(t *testing.T) {
	if source := leaseEventSource("example.com/csi", "node-1"); source != "example.com-csi/node-1" {
		t.Errorf("leaseEventSource = %q", source)
	}
}

func TestLeaseNameIsUpstreams(t *testing.T) {
	for driver, want := range map[string]string{
		"csimock.exeunt.io": "csimock-exeunt-io",
		"example.com/nfs":   "example-com-nfs",
		"Driver_1":          "Driver-1",
		"ends-with.":        "ends-with-X",
	} {
		if got := leaseName(driver); got != want {
			t.Errorf("leaseName(%q) = %q, want %q", driver, got, want)
		}
	}
}
