package runner

import (
	"testing"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// journaled is a session that found a claim whose volume is requested, with an entry in the journal of our provisioner.
type journaled struct {
	*session
	t           *testing.T
	claim       *v1.PersistentVolumeClaim
	with, empty *coordinationv1.Lease
}

func newJournaled(t *testing.T) *journaled {
	object := deletedAlive(true)
	object.Finalizers, object.Spec.Protected = []string{alive.Finalizer}, new(true)
	r := newTestRunner(t, object, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: clusterID}})
	r.Clients.Config.Host = "https://127.0.0.1:1"
	r.current, r.synced = object, true
	j := &journaled{session: newSession(r, leads(true), object, time.Now()), t: t, claim: requestedClaim(nil)}
	if err := j.readRecord(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.watched, j.listed, j.freeze.parts[0].listed, j.freeze.parts[1].listed = 1, 1, true, true
	text, err := journal.Encode(journal.Entry{UID: j.claim.UID, Namespace: j.claim.Namespace, Name: j.claim.Name,
		Volume:  &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-data"}},
		Request: journal.Request{CreateVolumeRequest: &csispec.CreateVolumeRequest{Name: "pvc-data"}}})
	if err != nil {
		t.Fatal(err)
	}
	of, term := journal.Journal{Namespace: "csi", Driver: "ebs"}, journal.Custody{LeaderLease: "leader"}
	j.with = of.Lease(journal.KindActive, 0, "pod_1_exeunt", term, map[types.UID]string{j.claim.UID: text})
	j.empty = of.Lease(journal.KindActive, 0, "pod_1_exeunt", term, nil)
	j.inventory.Set(j.claim)
	j.inventory.Set(j.with)
	return j
}

func (j *journaled) plan() {
	if err := j.savePlan(j.t.Context(), j.look()); err != nil {
		j.t.Fatal(err)
	}
}

// recorded carries out a round, and returns the fate of the only item of the record.
func (j *journaled) recorded() teardown.Fate {
	j.t.Helper()
	if _, err := j.round(j.t.Context(), j.t.Context(), nil); err != nil {
		j.t.Fatal(err)
	}
	found, err := j.loadRecord(j.t.Context(), "old")
	if err != nil || len(found.items) != 1 {
		j.t.Fatalf("the record is %+v, %v", found.items, err)
	}
	return found.items[0].Fate
}

// #21 #60 The namespace of our provisioner is deleted amid CreateVolume: its journal goes with an open entry.
func TestJournalThatIsDeletedIsNoAnswer(t *testing.T) {
	j := newJournaled(t)
	j.plan()
	j.inventory.Remove(j.claim) // a user, or the namespace
	j.recorded()
	j.inventory.Remove(j.with)
	if got := j.recorded(); got != teardown.Unknown || j.inventory.Work(time.Now()) != teardown.Awaited {
		t.Errorf("the fate is %s, the work %v", got, j.inventory.Work(time.Now()))
	}
}

// leaderLease returns the leader Lease of our provisioner.
func leaderLease() *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "csi", Name: "ebs", UID: "leader"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: new("pod_1_exeunt")}}
}

// #21 #60 The journal alone is deleted by hand, and our provisioner leads: its Lease says nothing of the call.
func TestLeaderWithoutItsJournalIsNoAnswer(t *testing.T) {
	j := newJournaled(t)
	j.inventory.Set(leaderLease())
	j.plan()
	j.inventory.Remove(j.with)
	j.recorded()
	j.inventory.Remove(j.claim)
	if got := j.recorded(); got != teardown.Unknown {
		t.Errorf("the fate in the record is %s", got)
	}
}

// #21 #60 Our provisioner leads, and ends its entry: no disk was made. Then the claim goes, and the provisioner stops.
func TestAnswerOfOurJournalIsRecorded(t *testing.T) {
	j := newJournaled(t)
	j.inventory.Set(leaderLease())
	j.plan()
	j.inventory.Set(j.empty)
	j.inventory.Remove(j.claim)
	if got := j.recorded(); got != teardown.Gone {
		t.Errorf("the fate in the record is %s", got)
	}
	report, err := j.Report(t.Context()) // the leader Lease has no holder now
	if err != nil || len(report.Items) != 1 || report.Items[0].Fate != teardown.Gone {
		t.Errorf("the report is %+v, %v", report, err)
	}
}
