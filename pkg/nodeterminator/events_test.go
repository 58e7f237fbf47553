package nodeterminator

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

// Volumes begin to be detached a second after our taint, and most pods end at once: that is no news.
func TestUsualWaitsAreToldAfterWhileOnly(t *testing.T) {
	for _, reason := range []node.Reason{node.Draining, node.AwaitingVolumeDetachment, node.DetachNotStarted} {
		event, after := eventOf(&v1.Node{}, &observation{}, node.Decision{Action: node.Wait, Reason: reason})
		if event.Reason != string(reason) || after != patience {
			t.Errorf("%s: event %q after %v", reason, event.Reason, after)
		}
	}
}
