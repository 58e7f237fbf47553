package scenarios

import (
	"slices"
	"strings"
	"testing"
)

// order returns the successful calls of a call log for a volume, each method once: DeleteVolume
// at its first call, the others at their last. A new kubelet mounts again what is mounted.
func order(log, volume string) []string {
	var calls []string
	for line := range strings.Lines(log) {
		method, called, _ := strings.Cut(strings.TrimSpace(line), " ")
		i := slices.Index(calls, method)
		if called != volume || i >= 0 && method == "DeleteVolume" {
			continue
		}
		if i >= 0 {
			calls = slices.Delete(calls, i, i+1)
		}
		calls = append(calls, method)
	}
	return calls
}

func TestOrderOfCalls(t *testing.T) {
	for name, tc := range map[string]struct{ log, want string }{
		"one volume":                  {"CreateVolume a\nDeleteVolume a\n", "CreateVolume DeleteVolume"},
		"another volume":              {"CreateVolume b\n", ""},
		"a volume is mounted again":   {"Stage a\nPublish a\nStage a\nPublish a\nUnpublish a\n", "Stage Publish Unpublish"},
		"a volume is mounted for two": {"Publish a\nUnpublish a\nPublish a\nUnpublish a\n", "Publish Unpublish"},
		"deleted before the unmount":  {"DeleteVolume a\nUnpublish a\nDeleteVolume a\n", "DeleteVolume Unpublish"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(order(tc.log, "a"), " "); got != tc.want {
				t.Errorf("order() = %s, want %s", got, tc.want)
			}
		})
	}
}
