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
	// elsewhere puts the deleted claim into its own namespace.
	elsewhere bool
	// class changes the class of the claims.
	class func(r *rig, class *storagev1.StorageClass)
	// happens causes the event and deletes the claim.
	happens func(r *rig, c claimSet)
}

func columns() []column {
	return []column{
		{name: "class too large", class: (*rig).makeTooLarge, happens: (*rig).dropUnlogged},
		{name: "claim deleted", happens: (*rig).drop},
		{name: "namespace deleted", elsewhere: true, class: (*rig).needSecret, happens: (*rig).dropNamespace, flags: []string{"--journal-unresolved-after=3s"}},
		{name: "journal deleted", happens: (*rig).deleteJournal},
		{name: "journal edited", happens: (*rig).editJournal},
		{name: "leader replaced", flags: electionFlags, happens: (*rig).replaceLeader},
	}
}

// electionFlags make a standby lead six seconds after the leader was killed.
var electionFlags = []string{"--leader-election", "--leader-election-lease-duration=6s", "--leader-election-renew-deadline=2s", "--leader-election-retry-period=500ms"}

// strikeWhile makes the calls of a starting provisioner fail, and causes the event of the
// column while CreateVolume and DeleteVolume calls are pending.
func (r *rig) strikeWhile(col column) {
	r.T.Helper()
	namespace := r.Namespace
	if col.elsewhere {
		namespace = r.NewSecretNamespace("gone")
		r.CreateSecret(r.Namespace)
	}
	c := r.createClaims(col.name, namespace)
	r.Kill()
	r.Args = append([]string{"--timeout=2s"}, col.flags...)
	r.driver.Pause()
	r.inject(0, append(c.targets(), processCalls()...)...)
	r.play(c, col.name, func(class *storagev1.StorageClass) {
		if col.class != nil {
			col.class(r, class)
		}
	})
	r.Start()
	r.await("struck", processCalls()...)
	r.await("struck", c.targets()...)
	col.happens(r, c)
	r.expectNothingForgotten()
	r.driver.Resume()
	r.await("answered", c.targets()...)
	r.settle(c)
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
func (r *rig) makeTooLarge(class *storagev1.StorageClass) {
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

// dropUnlogged checks that the claims are served without entries, and with events.
func (r *rig) dropUnlogged(c claimSet) {
	r.T.Helper()
	r.unlogged.Insert(c.dropped.UID, c.kept.UID)
	for _, claim := range []*v1.PersistentVolumeClaim{c.dropped, c.kept} {
		r.AwaitEvent(claim, "ProvisioningWithoutJournal")
	}
	if entries := r.driver.JournalEntries(journal.KindActive); len(entries) > 0 {
		r.T.Errorf("the journal has %d entries, want none for a too large class", len(entries))
	}
	r.drop(c)
}

// needSecret adds a secret in the claim's namespace to the class parameters.
func (r *rig) needSecret(class *storagev1.StorageClass) {
	class.Parameters = map[string]string{
		"csi.storage.k8s.io/provisioner-secret-name":      "credentials",
		"csi.storage.k8s.io/provisioner-secret-namespace": "${pvc.namespace}",
	}
}

// dropNamespace deletes the namespace of the claim, the secret first, as the namespace
// controller may do. It does not run here.
func (r *rig) dropNamespace(c claimSet) {
	r.T.Helper()
	r.awaitEntries(c.dropped.UID, c.kept.UID)
	r.unresolved.Insert(c.dropped.UID)
	deleted := time.Now()
	r.DeleteNamespace(c.dropped.Namespace)
	r.DeleteSecret(c.dropped.Namespace)
	r.drop(c)
	r.FinalizeNamespace(c.dropped.Namespace)
	harness.Await(r.Session, &v1.Namespace{}, harness.ObjectName{Resource: "namespaces", Namespace: "", Name: c.dropped.Namespace}, "is gone", func(_ *v1.Namespace, exists bool) bool { return !exists })
	r.expectTook(c.dropped.Namespace, deleted)
}

// awaitEntries waits until the journal has entries of the claims.
func (r *rig) awaitEntries(claims ...types.UID) {
	r.T.Helper()
	var missing []types.UID
	err := wait.PollUntilContextTimeout(r.Ctx, 20*time.Millisecond, harness.DeletionLimit, true, func(context.Context) (bool, error) {
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
func (r *rig) activeLeases() []string {
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
func (r *rig) deleteJournal(c claimSet) {
	r.T.Helper()
	r.awaitEntries(c.dropped.UID, c.kept.UID)
	for _, name := range r.activeLeases() {
		r.Must(r.Client.CoordinationV1().Leases(deploy.Namespace).Delete(r.Ctx, name, metav1.DeleteOptions{}), "delete lease")
	}
	r.repaired(c)
}

// editJournal removes the entries, and nothing else, from the journal's Leases.
func (r *rig) editJournal(c claimSet) {
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
	r.repaired(c)
}

// repaired waits until the entries, which the next provisioner needs, are written again.
func (r *rig) repaired(c claimSet) {
	r.T.Helper()
	r.awaitEntries(c.dropped.UID, c.kept.UID)
	r.drop(c)
	r.Kill()
	r.Start()
}

// replaceLeader makes a standby take over and serve the claims while calls of the old
// leader are pending. Old leaders are killed and stopped in turns.
func (r *rig) replaceLeader(c claimSet) {
	r.T.Helper()
	r.awaitEntries(c.dropped.UID, c.kept.UID)
	standby := &harness.Supervisor{Session: r.Session, Socket: r.driver.Socket, Name: r.Namespace + "-standby", Args: r.Args}
	standby.Start()
	r.T.Cleanup(standby.Kill)
	r.awaitLogOf(standby, "Filling caches")
	if standby.HasLogged(`"Working"`) {
		r.T.Error("both replicas lead")
	}
	r.drop(c)
	if r.number%2 == 0 {
		r.Kill()
	} else {
		r.Stop()
	}
	r.expectNothingForgotten()
	r.awaitLogOf(standby, `"Working"`)
	r.AwaitBound(c.kept.Name)
	r.standby = standby
}

func (r *rig) awaitLogOf(k *harness.Supervisor, text string) {
	r.T.Helper()
	err := wait.PollUntilContextTimeout(r.Ctx, 20*time.Millisecond, 3*harness.DeletionLimit, true, func(context.Context) (bool, error) { return k.HasLogged(text), nil })
	if err != nil {
		r.T.Fatalf("the standby has not logged %q", text)
	}
}
