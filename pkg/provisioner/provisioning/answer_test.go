package provisioning

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
)

// withHandle returns a volume of the driver with the handle.
func withHandle(handle string) *v1.PersistentVolume {
	return &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{
		CSI: &v1.CSIPersistentVolumeSource{Driver: csimock.DefaultName, VolumeHandle: handle},
	}}}
}

func TestHandleOfAnswerIsChecked(t *testing.T) {
	for name, tc := range map[string]struct {
		handle, reserved string // by another claim
		refusal          string // "" for an accepted handle
	}{
		"new handle":              {"h", "another", ""},
		"handle of another claim": {"h", "h", "which another volume has"},
		"no handle":               {"", "", "the driver returned no volume handle"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newObserver(t)
			c.Deletion = &discarding{}
			c.memory.reserve(tc.reserved, "another")
			failure := c.checkHandle(backend.Answer{Handle: tc.handle, Shown: tc.handle, Volume: withHandle(tc.handle)},
				observed(claimRecord{}))
			if failure == nil && tc.refusal != "" || failure != nil &&
				(tc.refusal == "" || !strings.Contains(failure.Err.Error(), tc.refusal)) {
				t.Errorf("failure = %+v, want %q", failure, tc.refusal)
			}
		})
	}
}

func TestResultOfCallIsRecordedWithoutVolumeEvent(t *testing.T) {
	for name, tc := range map[string]struct {
		events   int // during the call
		recorded bool
	}{"no event": {0, true}, "event during the call": {1, false}} {
		t.Run(name, func(t *testing.T) {
			var logged strings.Builder
			ctx := klog.NewContext(t.Context(), funcr.New(func(_, text string) { logged.WriteString(text) }, funcr.Options{}))
			c, o := newObserver(t), observed(claimRecord{object: objectFacts{events: 2}})
			c.updateRecord(o, func(r *claimRecord) { r.object.events = 2 + tc.events })
			recorded := c.recordResult(ctx, o, func(r *claimRecord) { r.request.creation = provision.Created })
			if r, _ := c.memory.lookup("uid"); recorded != tc.recorded ||
				(r.request.creation == provision.Created) != tc.recorded {
				t.Errorf("recordResult = %v, record %+v", recorded, r)
			}
			if repeated := strings.Contains(logged.String(), "the call is repeated"); repeated == tc.recorded {
				t.Errorf("log: %s", logged.String())
			}
		})
	}
}
