package cli

import (
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const unresolved = types.UID("b2b2b2b2-0000-4000-8000-000000000000")

// TestRollbackToUpstreamLosesNothing replaces our programs by upstream's while volumes are
// being deleted in both orders. Exeunt's commands change what may be changed, and wait for
// the rest; in the end nothing of Exeunt is left, and no disk.
func TestRollbackToUpstreamLosesNothing(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{NoPrograms: true}, harness.Within(3*harness.Timeout))
	c := newRollback(s)
	if s.ApplyAdmission() {
		s.MoveDriverList(s.Namespace)
	}
	writeEntry(s, s.Driver.DriverName, journal.KindUnresolved, unresolved)
	s.Must(s.StartPrograms(s.Ctx, harness.Setup{LeaderElection: true, ProvisionerFlags: elect}), "start our programs")

	volumes := c.rollBackBesideOurs()
	s.DeleteVolume(volumes["swap-pv-first"].Name)
	s.AwaitVolume(volumes["swap-pv-first"].Name, "is Terminating",
		func(v *v1.PersistentVolume) bool { return v.DeletionTimestamp != nil })
	stopOurs(s)
	s.DeleteClaim("swap-claim-first")
	startUpstream(s)
	s.DeleteClaim("swap-pv-first")
	for _, name := range []string{"swap-pv-first", "swap-claim-first"} {
		s.AwaitVolumeGone(volumes[name].Name)
	}
	finish(c)
	s.CreateClaim("new", harness.DeleteClass)
	volumes["new"] = s.AwaitBound("new")
	for _, name := range []string{"kept", "new"} {
		s.DeleteClaim(name)
		s.AwaitVolumeGone(volumes[name].Name)
	}
	for name, volume := range volumes {
		if s.IsStored(harness.Handle(volume)) {
			t.Errorf("the disk of %s leaked", name)
		}
	}
}

// rollBackBesideOurs runs the command while our programs delete volumes. It returns volumes
// by the names of their claims.
func (c rollbackCommand) rollBackBesideOurs() map[string]*v1.PersistentVolume {
	c.T.Helper()
	late := deletedTooLate(c.Session)
	volumes := bindProtected(c.Session, "ours-pv-first", "ours-claim-first", "swap-pv-first", "swap-claim-first", "kept")
	c.DeleteVolume(volumes["ours-pv-first"].Name)
	c.DeleteClaim("ours-claim-first")
	c.AwaitVolumeGone(volumes["ours-claim-first"].Name)
	c.expect(2, []string{"1. pending", "2. blocked", "4. blocked", "5. blocked", "delete its claim",
		"unresolved entries: 1"})
	if written := c.writes(); len(written) > 0 {
		c.T.Errorf("a dry run has written: %q", written)
	}
	if got := c.states("--confirm"); got != "done blocked done blocked blocked blocked done blocked done" {
		c.T.Errorf("while a disk is to be deleted: %s", got)
	}
	c.DeleteClaim("late")
	c.AwaitVolumeGone(late.Name)
	c.DeleteClaim("ours-pv-first")
	c.AwaitVolumeGone(volumes["ours-pv-first"].Name)
	if got := c.states("--confirm"); got != "done done done pending pending done done blocked done" {
		c.T.Errorf("before the swap: %s", got)
	}
	volumes["late"] = late
	return volumes
}

// bindProtected creates claims, and waits until they are bound to volumes with the finalizer.
func bindProtected(s *harness.Session, names ...string) map[string]*v1.PersistentVolume {
	s.T.Helper()
	all := map[string]*v1.PersistentVolume{}
	for _, name := range names {
		s.CreateClaim(name, harness.DeleteClass)
	}
	for _, name := range names {
		all[name] = s.AwaitBound(name)
		s.ExpectFinalizer(all[name], true)
	}
	return all
}

// deletedTooLate returns a bound volume with policy Delete that was deleted before it could
// get its finalizer; its claim is "late".
func deletedTooLate(s *harness.Session) *v1.PersistentVolume {
	s.T.Helper()
	s.CreateVolume(s.CreateStoredVolume("late"), v1.PersistentVolumeReclaimRetain)
	s.CreateClaim("late", s.Namespace)
	volume := s.AwaitBound("late")
	s.DeleteVolume(volume.Name)
	s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimDelete)
	return s.AwaitVolume(volume.Name, "has the annotation", func(v *v1.PersistentVolume) bool {
		return reclaim.StatusOf(v) == reclaim.StatusPending
	})
}

// stopOurs ends all our programs, as the administrator does.
func stopOurs(s *harness.Session) {
	s.T.Helper()
	for _, process := range s.Processes() {
		s.Must(process.Stop(s.Ctx), "stop "+process.Name())
		s.ExpectEnd(process)
	}
}

// startUpstream starts upstream's loops and its sidecar with the same election.
func startUpstream(s *harness.Session) {
	s.T.Helper()
	s.Must(s.GrantUpstream(s.Ctx), "grant upstream's rights")
	loops, err := s.Plane.StartUpstreamLoops(s.Ctx, sandbox.Controller{Name: "upstream-loops"})
	s.Must(err, "start upstream's loops")
	sidecar, err := s.Plane.StartUpstreamProvisioner(s.Ctx, s.Driver, sandbox.Controller{
		Name: "upstream-sidecar", Env: []string{"NAMESPACE=" + deploy.Namespace}, Args: strings.Fields(elect),
	})
	s.Must(err, "start upstream's sidecar")
	s.T.Cleanup(func() { _, _ = sidecar.Kill(), loops.Kill() })
}

// finish repeats the command until nothing is left, and checks the saved entry and that
// another run changes nothing.
func finish(c rollbackCommand) {
	c.T.Helper()
	c.runUntilNothingIsLeft()
	expectNothingLeft(c.Session)
	files := c.files()
	if len(files) != 1 {
		c.T.Fatalf("saved files: %q, want one", files)
	}
	text, err := os.ReadFile(files[0])
	c.Must(err, "read the saved file")
	if !strings.Contains(string(text), "volume pvc-"+string(unresolved)+" for claim default/gone") ||
		strings.Contains(string(text), "\x1b") {
		c.T.Errorf("saved:\n%s", text)
	}
	written := len(c.writes())
	if written == 0 {
		c.T.Error("no write of the command is in the audit log: the test proves nothing")
	}
	c.expect(0, []string{"Nothing is left"}, "--confirm")
	if again := c.writes(); len(again) != written || len(c.files()) != 1 {
		c.T.Errorf("another run has written %q, files %q", again[written:], c.files())
	}
	restoreEntries(c, files[0])
}

// restoreEntries shows that the saved file brings the entries back.
func restoreEntries(c rollbackCommand, file string) {
	c.T.Helper()
	text, err := os.ReadFile(file)
	c.Must(err, "read the saved file")
	c.Must(sandbox.ApplyYAML(c.Ctx, c.Plane.RESTConfig(), listItems(c, text)), "apply the saved file")
	owner := journal.Journal{Namespace: deploy.Namespace, Driver: c.Driver.DriverName}
	leases := c.Client.CoordinationV1().Leases(owner.Namespace)
	lease, err := leases.Get(c.Ctx, owner.LeaseName(journal.KindUnresolved, 0), metav1.GetOptions{})
	c.Must(err, "read the restored Lease")
	if entries, broken := journal.Entries(lease); len(entries) != 1 || entries[0].UID != unresolved || len(broken) > 0 {
		c.T.Errorf("restored entries: %v, %v", entries, broken)
	}
	c.Must(leases.Delete(c.Ctx, lease.Name, metav1.DeleteOptions{}), "delete the restored Lease")
}
