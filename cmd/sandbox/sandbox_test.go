package main

import (
	"strings"
	"testing"
)

// Whoever forgets to set KUBECONFIG in the other terminal works in a cluster with data.
func TestHintNamesWhatItDeletes(t *testing.T) {
	for line := range strings.Lines(hint) {
		if strings.HasPrefix(line, "kubectl delete ") && strings.Contains(line, "--all") {
			t.Errorf("in another cluster this deletes the volumes of everybody: %s", line)
		}
	}
}
