package storage

import (
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// Failing deletions have their own queues, and their requests grow with their number only.
func TestFailingDeletionsDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{}, harness.Within(3*harness.Timeout))
	volumes := s.CreateUndeletableVolumes(40)
	for range 10 {
		s.PassQueues()
	}
	requests := map[string]int{}
	for _, event := range s.Requests() {
		requests[event.Name]++
	}
	for _, name := range volumes {
		if requests[name] > 40 {
			t.Errorf("%d requests for %s, whose deletion fails: the backoff must grow", requests[name], name)
		}
	}
	for agent, most := range map[string]int{"pv-controller-binding": 20 * 10, "pv-controller-releasing": 5 * 60,
		"pv-controller-reclaiming": 20 * 40} {
		if got := s.CountRequests(func(e sandbox.Event) bool { return strings.HasSuffix(e.UserAgent, "/"+agent) }); got == 0 || got > most {
			t.Errorf("%s sent %d requests, want at least one and at most %d", agent, got, most)
		}
	}
}
