package volume

import "strings"

// inProgress are parts of messages of calls that are repeated because they take long. They
// are no refusal.
var inProgress = []string{"code = DeadlineExceeded", "code = Aborted", "code = Canceled", "context deadline exceeded",
	"context canceled"}

// ended are parts of messages about an obstacle that why reads itself: the message may be
// older than the end of the obstacle. All parts of a line have to be there.
var ended = [][]string{
	{"is still attached to"}, {"error getting secret", "not found"}, {"the deletion secret", "does not exist"},
}

// IsRefusal reports whether the message of a failed call is a refusal. A call that takes
// longer than its time limit is none, and neither is an obstacle that is read from the cluster.
func IsRefusal(message string) bool {
	for _, part := range inProgress {
		if strings.Contains(message, part) {
			return false
		}
	}
	for _, parts := range ended {
		if containsAll(message, parts) {
			return false
		}
	}
	return true
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// SaysPluginMissing reports whether the message of a Failed volume says that no plugin can
// delete it.
func SaysPluginMissing(message string) bool {
	if !strings.Contains(message, "plugin") && !strings.Contains(message, "deleter") {
		return false
	}
	for _, part := range []string{"no volume plugin", "no deletable volume plugin", "no deleter", "not found", "missing"} {
		if strings.Contains(message, part) {
			return true
		}
	}
	return false
}
