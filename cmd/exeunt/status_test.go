package main

import (
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/status"
)

func TestExitCodeOfStatusHasASentence(t *testing.T) {
	for name, tc := range map[string]struct {
		report status.Report
		want   string
	}{
		"volumes are not protected": {status.Report{Protection: status.ProtectionPartly}, "volumes are not all protected"},
		"not known":                 {status.Report{Protection: status.ProtectionUnknown}, "is not known"},
		"nodes": {status.Report{Protection: status.ProtectionOn, Nodes: &status.Nodes{Findings: []string{"x"}}},
			"below NODES"},
		"teardown": {status.Report{Protection: status.ProtectionOn, Teardown: &status.Teardown{Findings: []string{"x"}}},
			"below TEARDOWN"},
	} {
		t.Run(name, func(t *testing.T) {
			err := protectionOutcome(tc.report)
			if terminal.ExitStatus(err) != exitWaiting || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("exit status %d, %v, want a sentence with %q", terminal.ExitStatus(err), err, tc.want)
			}
		})
	}
	if err := protectionOutcome(status.Report{Protection: status.ProtectionOn}); err != nil {
		t.Errorf("all volumes are protected: %v", err)
	}
}
