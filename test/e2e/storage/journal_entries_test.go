package storage

import (
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// One claim is served, one is deleted while the driver does not answer, one while no
// provisioner runs.
func TestClaimNeverGetsOurFinalizer(t *testing.T) {
	j := newJournaled(harness.Join(t, harness.Setup{}), v1.PersistentVolumeReclaimDelete)
	watcher, err := j.Client.CoreV1().PersistentVolumeClaims(j.Namespace).Watch(j.Ctx, metav1.ListOptions{})
	j.Must(err, "watch claims")
	defer watcher.Stop()
	j.start()
	j.CreateClaim("served", j.class)
	j.AwaitBound("served")
	j.DeleteClaim("served")
	j.AwaitClaimGone("served")
	j.awaitVolumes(0)
	j.abandon("unanswered")
	j.kill()
	pending := j.CreateClaim("unserved", j.class)
	j.AwaitClaim(pending.Name, "is pending", func(c *v1.PersistentVolumeClaim) bool { return len(c.Annotations) > 0 })
	j.DeleteClaim(pending.Name)

	versions := 0
	for gone := 0; gone < 3; {
		select {
		case event := <-watcher.ResultChan():
			claim, is := event.Object.(*v1.PersistentVolumeClaim)
			if !is {
				t.Fatalf("the watch of claims ended: %+v", event)
			}
			versions++
			if event.Type == watch.Deleted {
				gone++
			}
			if other := slices.DeleteFunc(claim.Finalizers,
				func(f string) bool { return f == "kubernetes.io/pvc-protection" }); len(other) > 0 {
				t.Errorf("claim %s has the finalizers %v", claim.Name, other)
			}
		case <-j.Ctx.Done():
			t.Fatalf("%d of 3 claims were deleted", gone)
		}
	}
	t.Logf("%d versions of 3 claims were seen", versions)
}

func TestLostAnswerIsFinishedAndReclaimed(t *testing.T) {
	harness.Parallel(t, harness.Setup{})
	for name, restart := range map[string]func(*journaled){
		"same process":    func(*journaled) {},
		"after a rollout": func(j *journaled) { j.stop(); j.start() },
		"after a crash":   func(j *journaled) { j.kill(); j.expireLeader(0); j.start() },
		"after two crashes": func(j *journaled) {
			j.kill()
			j.expireLeader(0)
			holder := journal.HolderOf(&j.leases(journal.KindActive)[0])
			j.start()
			j.Until("the second process has taken over the journal",
				func() bool { return journal.HolderOf(&j.leases(journal.KindActive)[0]) != holder })
			j.kill()
			j.expireLeader(0)
			j.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJournaled(harness.Join(t, harness.Setup{}), v1.PersistentVolumeReclaimDelete, elect...)
			j.start()
			claim := j.abandon("claim")
			restart(j)
			j.expectFinished(claim)
		})
	}
}

func TestLostAnswerWithPolicyRetainKeepsTheVolume(t *testing.T) {
	j := newJournaled(harness.Join(t, harness.Setup{}), v1.PersistentVolumeReclaimRetain)
	j.start()
	claim := j.abandon("claim")
	j.kill()
	j.start()
	j.mock.Server.ClearFaults()
	j.AwaitVolume("pvc-"+string(claim.UID), "is released", harness.IsReleased)
	j.awaitEntries(journal.KindActive, 0)
	j.expectVolumes(1)
	if calls := j.called("DeleteVolume"); calls != 0 {
		t.Errorf("DeleteVolume was called %d times", calls)
	}
}

// Another process has led after the request: it may have served the claim.
func TestEntryInBrokenCustodyWaitsForAdministrator(t *testing.T) {
	j := enterJournaled(t, elect...)
	j.start()
	claim := j.abandon("claim")
	j.kill()
	j.mock.Server.ClearFaults()
	before := j.called("CreateVolume")
	j.expireLeader(1)
	for range 2 { // also after another crash
		j.start()
		entry := j.awaitEntries(journal.KindUnresolved, 1)[0]
		if !entry.CustodyBroken || entry.Unresolved == nil || entry.UID != claim.UID {
			t.Errorf("the entry is %+v", entry)
		}
		if message := j.AwaitEvent(j.aboutJournal(), "JournalEntryUnresolved"); !strings.Contains(message,
			string(claim.UID)) {
			t.Errorf("the event does not name the claim's UID: %s", message)
		}
		j.CreateClaim("marker", j.class)
		j.AwaitBound("marker")
		j.DeleteClaim("marker")
		j.awaitVolumes(1)
		j.expectMetric("exeunt_provisioning_journal_unresolved_entries 1")
		j.kill()
		j.expireLeader(0)
	}
	if calls := j.called("CreateVolume"); calls != before+2 {
		t.Errorf("CreateVolume was called %d times for the claim", calls-before-2)
	}
	if len(j.entries(journal.KindActive)) != 0 {
		t.Errorf("the entry is still active: %+v", j.entries(journal.KindActive))
	}
	j.start()
	j.AwaitLog(j.sidecar, `"Working"`)
	j.approve(claim.UID)
	expectFinished(j, claim.UID)
	if calls := j.called("CreateVolume"); calls != before+3 {
		t.Errorf("the approved request was sent %d times, want once", calls-before-2)
	}
}

// expectFinished waits until the approved entry and the volume are gone, and no unresolved
// entry is counted.
func expectFinished(j *journaled, claim types.UID) {
	j.T.Helper()
	j.awaitVolumes(0)
	j.awaitEntries(journal.KindUnresolved, 0)
	j.awaitEntries(journal.KindActive, 0)
	j.AwaitVolumeGone("pvc-" + string(claim))
	j.Until("no entry is counted as unresolved", func() bool {
		text, _ := j.HTTPGet(j.sidecar, "/metrics")
		return strings.Contains(text, "\nexeunt_provisioning_journal_unresolved_entries 0\n")
	})
}

// enterJournaled joins the default cluster and returns newJournaled.
func enterJournaled(t *testing.T, args ...string) *journaled {
	t.Helper()
	return newJournaled(harness.Join(t, harness.Setup{}, harness.Within(2*harness.Timeout)),
		v1.PersistentVolumeReclaimDelete, args...)
}

func TestForeignHolderEndsTheProgram(t *testing.T) {
	j := enterJournaled(t)
	j.start()
	j.open("claim")
	taken := j.edit(func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = ptr.To("other_exeunt") })
	select {
	case <-j.sidecar.Done():
	case <-j.Ctx.Done():
		t.Fatalf("the provisioner did not end; log %s", j.sidecar.LogFile())
	}
	if err := j.sidecar.Err(); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("the provisioner ended with %v, want exit status 1", err)
	}
	if sentence := "is held by other_exeunt: another process has taken over the provisioning journal"; !j.LogContains(j.sidecar, sentence) {
		t.Errorf("the log lacks %q: %s", sentence, j.sidecar.LogFile())
	}
	if now := j.leases(journal.KindActive)[0]; now.ResourceVersion != taken.ResourceVersion {
		t.Errorf("the journal of the other process was written: %+v", now)
	}
}

// The secret of the request is deleted with the namespace of the claim, so the request
// cannot be repeated.
func TestNamespaceDeletedWithSecretLeavesUnresolvedEntry(t *testing.T) {
	j := enterJournaled(t, "--journal-unresolved-after=2s")
	j.useOwnAccount() // because events in a Terminating namespace are forbidden
	j.setClassSecret()
	inside := *j.Session
	inside.Namespace = j.NewSecretNamespace("doomed")
	j.start()
	j.fail()
	claim := inside.CreateClaim("claim", j.class)
	j.awaitVolumes(1)
	j.DeleteNamespace(inside.Namespace)
	j.DeleteSecret(inside.Namespace) // as the namespace controller does, which does not run here
	inside.DeleteClaim(claim.Name)
	inside.AwaitClaimGone(claim.Name)
	j.FinalizeNamespace(inside.Namespace)
	j.mock.Server.ClearFaults()
	entry := j.awaitEntries(journal.KindUnresolved, 1)[0]
	if entry.UID != claim.UID || entry.CustodyBroken || !strings.Contains(entry.Unresolved.Reason,
		inside.Namespace+"/credentials") {
		t.Errorf("the entry is %+v, unresolved %+v", entry, entry.Unresolved)
	}
	if message := j.AwaitEvent(j.aboutJournal(), "JournalEntryUnresolved"); !strings.Contains(message,
		inside.Namespace+"/credentials") {
		t.Errorf("the event does not name the secret: %s", message)
	}
	j.awaitEntries(journal.KindActive, 0)
	j.expectMetric("exeunt_provisioning_journal_unresolved_entries 1")
	j.expectVolumes(1)
	if calls := j.called("DeleteVolume"); calls != 0 {
		t.Errorf("DeleteVolume was called %d times", calls)
	}

	// The administrator restores namespace and secret, with new UIDs.
	_, err := j.Client.CoreV1().Namespaces().Create(j.Ctx,
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: inside.Namespace}}, metav1.CreateOptions{})
	j.Must(err, "create namespace again")
	j.CreateSecret(inside.Namespace)
	j.approve(claim.UID)
	j.expectFinished(claim)
}

// setClassSecret adds a secret in the claim's namespace to the class parameters.
func (j *journaled) setClassSecret() {
	j.T.Helper()
	classes := j.Client.StorageV1().StorageClasses()
	class, err := classes.Get(j.Ctx, j.class, metav1.GetOptions{})
	j.Must(err, "read class")
	j.Must(classes.Delete(j.Ctx, j.class, metav1.DeleteOptions{}), "delete class")
	class.ResourceVersion = ""
	class.Parameters = map[string]string{
		"csi.storage.k8s.io/provisioner-secret-name":      "credentials",
		"csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}",
	}
	_, err = classes.Create(j.Ctx, class, metav1.CreateOptions{})
	j.Must(err, "create class")
}

func TestGateOffWritesNoLease(t *testing.T) {
	j := enterJournaled(t, "--feature-gates=ProvisioningJournal=false")
	j.start()
	j.abandon("unanswered")
	j.mock.Server.ClearFaults()
	j.awaitVolumes(0) // from the memory of this process
	j.CreateClaim("served", j.class)
	j.AwaitBound("served")
	if leases := append(j.leases(journal.KindActive), j.leases(journal.KindUnresolved)...); len(leases) > 0 {
		t.Errorf("the journal has the leases %+v", leases)
	}
}

func TestGateOffFinishesInheritedEntries(t *testing.T) {
	j := enterJournaled(t)
	j.start()
	claim := j.abandon("claim")
	j.kill()
	j.start("--feature-gates=ProvisioningJournal=false")
	j.expectFinished(claim)
	before := j.leases(journal.KindActive)
	j.CreateClaim("served", j.class)
	j.AwaitBound("served")
	j.abandonBeside("unanswered", 1)
	if now := j.leases(journal.KindActive); len(now) != len(before) || len(now) > 0 &&
		now[0].ResourceVersion != before[0].ResourceVersion {
		t.Errorf("the journal was written: %+v", now)
	}
}

// abandonBeside is abandon while the driver has other volumes.
func (j *journaled) abandonBeside(claim string, others int) {
	j.T.Helper()
	j.open(claim)
	j.DeleteClaim(claim)
	j.AwaitClaimGone(claim)
	j.mock.Server.ClearFaults()
	j.awaitVolumes(others)
}
