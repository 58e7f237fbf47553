package provisioning

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// errDenied is the denial of a write by a webhook.
var errDenied error = &answer.Refusal{Answer: errors.New(`patch claim ns/claim: admission webhook "w" denied the request`)}

// failing reports a failure of the driver.
func failing(err error, infeasible bool) func(*flow, *observation) {
	return func(f *flow, o *observation) { _ = f.reportFailure(o, f.userError(o, err, infeasible)) }
}

// eventSentences are all events about the creation of a volume.
var eventSentences = map[string]struct {
	report func(*flow, *observation)
	want   string
}{
	"recorded":     {(*flow).reportSuccess, "Normal ProvisioningSucceeded Successfully provisioned volume pvc-uid"},
	"driver fails": {failing(errors.New("full"), false), `Warning ProvisioningFailed failed to provision volume with StorageClass "class": full`},
	"driver refuses": {failing(errors.New("no such type"), true),
		`Warning ProvisioningFailed failed to provision volume with StorageClass "class": infeasible error, retries will be delayed (not retried for 1s unless class, node or annotations of the claim change): no such type`},
	"write is refused": {func(f *flow, o *observation) { _ = f.reportRefusal(o, errDenied) },
		`Warning ProvisioningFailed patch claim ns/claim: admission webhook "w" denied the request`},
	"populator": {func(f *flow, o *observation) {
		_ = f.reportWait(o, provision.ReportOtherProvisioner,
			&provision.LeftToOther{Sentence: "Assuming an external populator will provision the volume: the data source is a Hello of the group \"example.com\""})
	}, `Normal Provisioning Assuming an external populator will provision the volume: the data source is a Hello of the group "example.com"`},
	"unanswered, claim gone": {func(f *flow, o *observation) { _ = f.reportUnresolved(o, errors.New("context deadline exceeded")) },
		"Warning ProvisioningUnresolved The driver csimock.exeunt.io has not answered whether it created volume pvc-uid, which no claim wants any more; the request is repeated: context deadline exceeded"},
	"cleanup fails": {func(f *flow, o *observation) { _ = f.reportCleanupFailed(o, errors.New("busy")) },
		"Warning ProvisioningCleanupFailed Error cleaning provisioned volume for claim ns/claim: delete unused volume pvc-uid: busy; retried with backoff"},
	"left alone": {func(f *flow, o *observation) { f.reportLeftAlone(o, volumeNamed) },
		`Warning ProvisioningCleanupFailed The driver returned the volume handle "h" for the claim, but a PersistentVolume or a claim names its volume already; the volume is left alone: delete it in the storage system if nobody needs it`},
	"left alone, claim gone": {func(f *flow, o *observation) { _ = f.reportWait(o, provision.ReportLeftAlone, nil) },
		`Warning ProvisioningCleanupFailed The driver returned the volume handle "h" for the claim, but the claim is gone, and its user may have kept the volume; the volume is left alone: delete it in the storage system if nobody needs it`},
	"another node": {func(f *flow, o *observation) { f.reportUnanswered(o) },
		`Warning ProvisioningCleanupFailed The driver has not answered whether it created volume pvc-uid for node "n1", and another node is selected; a volume in the storage of that node would be left alone`},
	"PersistentVolume is gone": {func(f *flow, o *observation) { _ = f.reportVanished(f.Context(), o) },
		"Warning VolumeVanished The claim was bound to volume pvc-uid, whose PersistentVolume no longer exists; the volume in the storage system may hold data and is left alone"},
	"entry is too large": {func(f *flow, o *observation) { f.reportUnlogged(o, journal.ErrTooLarge) },
		"Warning ProvisioningWithoutJournal Volume pvc-uid is created without a journal entry and may be left behind if the provisioner ends during the call: the request is too large for the journal"},
}

// Every event about the creation of a volume is written out here, to be read. Each is on the claim, in its namespace; package
// provision has the sentences about sources, of the namespace of the claim and of another one.
func TestEventsAreSentences(t *testing.T) {
	for name, tc := range eventSentences {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			o := &observation{claim: f.syncClaim().DeepCopy(), name: "pvc-uid"}
			o.record = claimRecord{
				disk:  diskFacts{volume: &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"}}, shown: "h"},
				claim: claimFacts{node: "n1"},
			}
			tc.report(f, o)
			if count := len(f.events.Events); count != 1 {
				t.Fatalf("%d events", count)
			}
			if got := <-f.events.Events; got != tc.want {
				t.Errorf("event\n%s, want\n%s", got, tc.want)
			}
		})
	}
}
