package reclaim

import (
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// Failing deletions have queues of their own, and ask in proportion to their number.
func TestFailingDeletionsDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{}, harness.Within(3*harness.Timeout))
	volumes := s.CreateUndeletableVolumes(40)
	for range 10 {
		s.PassQueues()
	}
	asked := map[string]int{}
	for _, event := range s.Requests() {
		asked[event.Name]++
	}
	for _, name := range volumes {
		if asked[name] > 40 {
			t.Errorf("%d requests for %s, whose deletion fails: the time between two tries must grow", asked[name], name)
		}
	}
	for agent, most := range map[string]int{"pv-controller-binding": 20 * 10, "pv-controller-releasing": 5 * 60, "pv-controller-reclaiming": 20 * 40} {
		if got := s.CountRequests(func(e sandbox.Event) bool { return strings.HasSuffix(e.UserAgent, "/"+agent) }); got == 0 || got > most {
			t.Errorf("%s asked %d times, want at least once and at most %d times", agent, got, most)
		}
	}
}
