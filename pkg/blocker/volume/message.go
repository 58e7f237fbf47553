package volume

import "strings"

// inProgress are parts of messages of calls that are repeated because they take long. They
// are no refusal.
var inProgress = []string{"code = DeadlineExceeded", "code = Aborted", "code = Canceled", "context deadline exceeded", "context canceled"}

// IsRefusal reports whether the message of a failed call is a refusal, and not a call that
// takes longer than its time limit.
func IsRefusal(message string) bool {
	for _, part := range inProgress {
		if strings.Contains(message, part) {
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
