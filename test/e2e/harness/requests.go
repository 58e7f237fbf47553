package harness

import (
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// Requests returns the requests of our programs so far, without watches.
func (s *Session) Requests() []sandbox.Event {
	s.T.Helper()
	events, err := sandbox.ReadAudit(s.Plane.AuditLog)
	s.Must(err, "read audit log")
	return slices.DeleteFunc(events, func(e sandbox.Event) bool {
		return !strings.HasPrefix(e.User, "system:serviceaccount:"+deploy.Namespace) || e.Verb == "watch"
	})
}

// CountRequests counts the requests of our programs for which such is true.
func (s *Session) CountRequests(such func(sandbox.Event) bool) int {
	s.T.Helper()
	count := 0
	for _, event := range s.Requests() {
		if such(event) {
			count++
		}
	}
	return count
}
