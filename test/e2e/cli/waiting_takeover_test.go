package cli

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// Only the leader of two processes tells of a deletion that began while no process ran.
func TestEarlierDeletionHasOneEvent(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{}, harness.Within(2*harness.Timeout))
	r := &rig{Session: s}
	kept := r.bound("kept")
	r.bound("used")
	r.CreatePod("used")
	first := s.Processes()[0]
	s.ExpectEnd(first)
	s.StopProcess(first)
	r.DeleteVolume(kept.Name)
	r.DeleteClaim("used")
	begun := time.Now().Truncate(time.Second) // as the times of events
	for i := range 2 {
		process, err := s.Plane.StartPVController(s.Ctx, sandbox.Controller{Name: fmt.Sprint("later-", i),
			HonorReclaimPolicy: true, Args: []string{"--leader-elect=true"}})
		s.Must(err, "start pv-controller")
		s.Add(process)
	}
	claim := r.NewClaim("used", harness.DeleteClass)
	r.expectEvent(kept, "ClaimExists", "PersistentVolumeClaim "+r.Namespace+"/kept")
	r.expectEvent(claim, "PodUsesClaim", "Pod "+r.Namespace+"/")
	events, err := r.Client.CoreV1().Events(metav1.NamespaceAll).
		List(r.Ctx, metav1.ListOptions{FieldSelector: "reason=" + deletionWaiting})
	r.Must(err, "list events")
	for _, event := range events.Items {
		if after := event.FirstTimestamp.Sub(begun); after < blocker.EventDelay || after > 15*time.Second+blocker.EventDelay {
			t.Errorf("the event about %s came after %v", event.InvolvedObject.Name, after)
		}
	}
	r.PassQueues()
	r.expectEvents(map[string]int{kept.Name: 1, "used": 1})
}
