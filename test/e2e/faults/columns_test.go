package faults

import (
	"context"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// column is an event during calls with a fault.
type column struct {
	name string
	// flags are further flags of the provisioner.
	flags []string
	// ownNamespace puts the deleted claim into its own namespace.
	ownNamespace bool
	// class changes the class of the claims.
	class func(r *faultTest, class *storagev1.StorageClass)
	// cause causes the event and deletes the claim.
	cause func(r *faultTest, c claimSet)
}

func columns() []column {
	return []column{
		{name: "class too large", class: (*faultTest).makeTooLarge, cause: (*faultTest).deleteUnlogged},
		{name: "claim deleted", cause: (*faultTest).deleteDropped},
		{name: "namespace deleted", ownNamespace: true, class: (*faultTest).needSecret,
			cause: (*faultTest).deleteClaimNamespace, flags: []string{"--journal-unresolved-after=3s"}},
		{name: "journal deleted", cause: (*faultTest).deleteJournal},
		{name: "journal edited", cause: (*faultTest).editJournal},
		{name: "leader replaced", flags: electionFlags, cause: (*faultTest).replaceLeader},
	}
}

// electionFlags make a standby lead six seconds after the leader was killed.
var electionFlags = []string{"--leader-election", "--leader-election-lease-duration=6s",
	"--leader-election-renew-deadline=2s", "--leader-election-retry-period=500ms"}

// runColumn makes the calls of a starting provisioner fail, and causes the event of the
// column while CreateVolume and DeleteVolume calls are pending.
func (r *faultTest) runColumn(col column) {
	r.T.Helper()
	namespace := r.Namespace
	if col.ownNamespace {
		namespace = r.NewSecretNamespace("gone")
		r.CreateSecret(r.Namespace)
	}
	c := r.createClaims(col.name, namespace)
	r.Kill()
	r.Args = append([]string{"--timeout=2s"}, col.flags...)
	r.driver.Pause()
	r.inject(0, append(c.targets(), processCalls()...)...)
	r.startCalls(c, col.name, func(class *storagev1.StorageClass) {
		if col.class != nil {
			col.class(r, class)
		}
	})
	r.Start()
	r.await("faulted", processCalls()...)
	r.await("faulted", c.targets()...)
	col.cause(r, c)
	r.expectNoLeak()
	r.driver.Resume()
	r.await("answered", c.targets()...)
	r.awaitConsistent(c)
	if len(col.flags) > 0 {
		if r.standby != nil {
			r.standby.Stop()
		}
		r.Kill()
		r.Args = nil
		r.Start()
	}
}

// makeTooLarge changes the class so that its entries exceed journal.MaxEncoded bytes:
// parameters and mount options are each near the 4 KiB limit of CSI and incompressible.
func (r *faultTest) makeTooLarge(class *storagev1.StorageClass) {
	random := rand.New(rand.NewPCG(1, uint64(r.number)))
	text := func(length int) string {
		printable := make([]byte, length)
		for i := range printable {
			printable[i] = byte('!' + random.IntN('~'-'!'+1))
		}
		return string(printable)
	}
	class.Parameters = map[string]string{"policy": text(4000)}
	class.MountOptions = []string{text(4000)}
}

// deleteUnlogged checks that the claims are served without entries, and with events.
func (r *faultTest) deleteUnlogged(c claimSet) {
	r.T.Helper()
	r.unlogged.Insert(c.dropped.UID, c.kept.UID)
	for _, claim := range []*v1.PersistentVolumeClaim{c.dropped, c.kept} {
		r.AwaitEvent(claim, "ProvisioningWithoutJournal")
	}
	if entries := r.driver.JournalEntries(journal.KindActive); len(entries) > 0 {
		r.T.Errorf("the journal has %d entries, want none for a too large class", len(entries))
	}
	r.deleteDropped(c)
}

// needSecret adds a secret in the claim's namespace to the class parameters.
func (r *faultTest) needSecret(class *storagev1.StorageClass) {
	class.Parameters = map[string]string{
		"csi.storage.k8s.io/provisioner-secret-name":      "credentials",
		"csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}",
	}
}

// deleteClaimNamespace deletes the namespace of the claim, the secret first, as the namespace
// controller may do. It does not run here.
func (r *faultTest) deleteClaimNamespace(c claimSet) {
	r.T.Helper()
	r.awaitEntries(c.dropped.UID, c.kept.UID)
	r.unresolved.Insert(c.dropped.UID)
	deleted := time.Now()
	r.DeleteNamespace(c.dropped.Namespace)
	r.DeleteSecret(c.dropped.Namespace)
	r.deleteDropped(c)
	r.FinalizeNamespace(c.dropped.Namespace)
	harness.Await(r.Session, &v1.Namespace{}, harness.ObjectName{Resource: "namespaces", Namespace: "",
		Name: c.dropped.Namespace}, "is gone", func(_ *v1.Namespace, exists bool) bool { return !exists })
	r.expectTook(c.dropped.Namespace, deleted)
}

// awaitEntries waits until the journal has entries of the claims.
func (r *faultTest) awaitEntries(claims ...types.UID) {
	r.T.Helper()
	var missing []types.UID
	err := wait.PollUntilContextTimeout(r.Ctx, 20*time.Millisecond, harness.DeletionLimit, true,
		func(context.Context) (bool, error) {
			found := map[types.UID]bool{}
			for _, entry := range r.driver.JournalEntries(journal.KindActive) {
				found[entry.UID] = true
			}
			missing = nil
			for _, claim := range claims {
				if !found[claim] {
					missing = append(missing, claim)
				}
			}
			return len(missing) == 0, nil
		})
	if err != nil {
		r.T.Fatalf("the journal has no entries of the claims %v, whose calls are pending", missing)
	}
}

// activeLeases returns the names of the journal's Leases.
func (r *faultTest) activeLeases() []string {
	r.T.Helper()
	j := journal.Journal{Namespace: deploy.Namespace, Driver: r.driver.Config.Name}
	leases, err := r.Client.CoordinationV1().Leases(j.Namespace).List(r.Ctx, metav1.ListOptions{})
	r.Must(err, "list leases")
	var names []string
	for i := range leases.Items {
		if kind, _, ours := j.KindOf(&leases.Items[i]); ours && kind == journal.KindActive {
			names = append(names, leases.Items[i].Name)
		}
	}
	if len(names) == 0 {
		r.T.Error("the journal has no Lease")
	}
	return names
}

// deleteJournal deletes the journal's Leases, and kills the provisioner once it has written
// them again.
func (r *faultTest) deleteJournal(c claimSet) {
	r.T.Helper()
	r.awaitEntries(c.dropped.UID, c.kept.UID)
	for _, name := range r.activeLeases() {
		r.Must(r.Client.CoordinationV1().Leases(deploy.Namespace).Delete(r.Ctx, name, metav1.DeleteOptions{}), "delete lease")
	}
	r.awaitRepair(c)
}

// editJournal removes the entries, and nothing else, from the journal's Leases.
func (r *faultTest) editJournal(c claimSet) {
	r.T.Helper()
	r.awaitEntries(c.dropped.UID, c.kept.UID)
	leases := r.Client.CoordinationV1().Leases(deploy.Namespace)
	for _, name := range r.activeLeases() {
		r.Must(retry.RetryOnConflict(retry.DefaultRetry, func() error {
			lease, err := leases.Get(r.Ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			for claim := range journal.Encoded(lease) {
				delete(lease.Annotations, journal.EntryPrefix+string(claim))
			}
			_, err = leases.Update(r.Ctx, lease, metav1.UpdateOptions{})
			return err
		}), "edit lease")
	}
	r.awaitRepair(c)
}

// awaitRepair waits until the entries, which the next provisioner needs, are written again.
func (r *faultTest) awaitRepair(c claimSet) {
	r.T.Helper()
	r.awaitEntries(c.dropped.UID, c.kept.UID)
	r.deleteDropped(c)
	r.Kill()
	r.Start()
}

// replaceLeader makes a standby take over and serve the claims while calls of the old
// leader are pending. Old leaders are killed and stopped in turns.
func (r *faultTest) replaceLeader(c claimSet) {
	r.T.Helper()
	r.awaitEntries(c.dropped.UID, c.kept.UID)
	standby := &harness.Supervisor{Session: r.Session, Socket: r.driver.Socket, Name: r.Namespace + "-standby",
		Args: r.Args}
	standby.Start()
	r.T.Cleanup(standby.Kill)
	r.awaitLogOf(standby, "Filling caches")
	if standby.HasLogged(`"Working"`) {
		r.T.Error("both replicas lead")
	}
	r.deleteDropped(c)
	if r.number%2 == 0 {
		r.Kill()
	} else {
		r.Stop()
	}
	r.expectNoLeak()
	r.awaitLogOf(standby, `"Working"`)
	r.AwaitBound(c.kept.Name)
	r.standby = standby
}

func (r *faultTest) awaitLogOf(k *harness.Supervisor, text string) {
	r.T.Helper()
	err := wait.PollUntilContextTimeout(r.Ctx, 20*time.Millisecond, 3*harness.DeletionLimit, true,
		func(context.Context) (bool, error) { return k.HasLogged(text), nil })
	if err != nil {
		r.T.Fatalf("the standby has not logged %q", text)
	}
}
