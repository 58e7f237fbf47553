package program

import (
	"strings"
	"testing"
	"time"
)

func TestDeadlinesWithoutTimeToStopAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		lease, renewal, retry time.Duration
		want                  string // "" for none
	}{
		"csi-provisioner":                     {15 * time.Second, 10 * time.Second, 5 * time.Second, ""},
		"kube-controller-manager":             {15 * time.Second, 10 * time.Second, 2 * time.Second, ""},
		"just enough":                         {14 * time.Second, 10 * time.Second, 5 * time.Second, ""},
		"no time to stop":                     {13 * time.Second, 10 * time.Second, 5 * time.Second, "--p-lease-duration"},
		"a lease states whole seconds":        {14 * time.Second, 10*time.Second + time.Millisecond, 5 * time.Second, "--p-lease-duration"},
		"parts of a second are not stated":    {14*time.Second + 999*time.Millisecond, 10*time.Second + time.Millisecond, 5 * time.Second, "--p-lease-duration"},
		"shorter than the renewal":            {5 * time.Second, 10 * time.Second, 5 * time.Second, "--p-lease-duration"},
		"no time for one renewal":             {15 * time.Second, 10 * time.Second, 9 * time.Second, "--p-renew-deadline"},
		"no retry period":                     {15 * time.Second, 10 * time.Second, 0, "--p-retry-period"},
		"a renewal deadline before any retry": {15 * time.Second, 0, time.Second, "--p-renew-deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckDeadlines("p", tc.lease, tc.renewal, tc.retry)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("CheckDeadlines = %v, want an error with %q", err, tc.want)
			}
		})
	}
}
