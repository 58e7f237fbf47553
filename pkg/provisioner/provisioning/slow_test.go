package provisioning

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
)

// slow is a backend whose calls take a while.
type slow struct {
	directories
	takes time.Duration
}

func (s *slow) Create(ctx context.Context, call backend.Call) (backend.Answer, *backend.Failure) {
	<-time.After(s.takes)
	return s.directories.Create(ctx, call)
}

// The key words are those of csi-provisioner.
const begun = `Normal Provisioning External provisioner is provisioning volume for claim "ns/c"`

func TestOnlySlowCallIsReportedBeforeItEnds(t *testing.T) {
	failed := `Warning ProvisioningFailed failed to provision volume with StorageClass "": full`
	full := []*backend.Failure{{Err: errors.New("full"), Outcome: provision.Uncertain}}
	for name, tc := range map[string]struct {
		takes time.Duration
		want  provision.Want
		next  []*backend.Failure
		sent  []string
	}{
		"fast":               {1900 * time.Millisecond, provision.Wanted, nil, nil},
		"slow":               {2100 * time.Millisecond, provision.Wanted, nil, []string{begun}},
		"fast failure":       {time.Millisecond, provision.Wanted, full, []string{failed}},
		"slow failure":       {time.Minute, provision.Wanted, full, []string{begun, failed}},
		"slow, for no claim": {time.Minute, provision.Unwanted, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, events := newObserver(t), record.NewFakeRecorder(10)
				c.Reporter, c.Deletion, c.Metrics = controller.NewReporter(events), &discarding{}, metrics.New("slow")
				c.Backend = &slow{directories{next: slices.Clone(tc.next), created: map[string]bool{}}, tc.takes}
				o := observed(claimRecord{})
				o.plan = &plan{request: directory{o.name}, volume: &v1.PersistentVolume{}}
				if _, err := c.create(t.Context(), o, provision.State{Want: tc.want, Journaled: true}); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Minute)
				synctest.Wait()
				close(events.Events)
				var sent []string
				for event := range events.Events {
					sent = append(sent, strings.TrimSpace(event))
				}
				if !slices.Equal(sent, tc.sent) {
					t.Errorf("events %q, want %q", sent, tc.sent)
				}
			})
		})
	}
}
