package library

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// entries are the journal entries of the kind.
func (s *fixture) entries(kind journal.Kind) []journal.Entry {
	s.T.Helper()
	of := journal.Journal{Namespace: account, Driver: s.name}
	list, err := s.Client.CoordinationV1().Leases(of.Namespace).List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "list leases")
	var all []journal.Entry
	for i := range list.Items {
		if is, _, ours := of.KindOf(&list.Items[i]); ours && is == kind {
			found, unreadable := journal.Entries(&list.Items[i])
			if len(unreadable) > 0 {
				s.T.Errorf("unreadable entries: %v", unreadable)
			}
			all = append(all, found...)
		}
	}
	return all
}

// expectEmptyJournal expects an empty journal.
func (s *fixture) expectEmptyJournal() {
	s.T.Helper()
	s.Until("the journal is empty", func() bool { return len(s.entries(journal.KindActive)) == 0 })
	if unresolved := s.entries(journal.KindUnresolved); len(unresolved) > 0 {
		s.T.Errorf("unresolved entries: %+v", unresolved)
	}
}

func TestNextLeaderFinishesTheCall(t *testing.T) {
	s := startFixture(t, exeunt, func(how *settings) { how.Elected = true })
	claim := s.killAfterProvision()
	s.DeleteClaim(claim.Name)
	s.AwaitClaimGone(claim.Name)
	s.expireLease()
	s.start()
	s.Until("nothing is leaked", func() bool { return len(s.leaked()) == 0 })
	s.AwaitVolumeGone(volumeOf(claim))
	s.expectEmptyJournal()
	if calls := s.count(deleted, volumeOf(claim)); calls != 1 {
		t.Errorf("Delete was called %d times, want once", calls)
	}
}

// expireLease ends the leader lease of a process that was killed.
func (s *fixture) expireLease() {
	s.T.Helper()
	leases := s.Client.CoordinationV1().Leases(account)
	lease, err := leases.Get(s.Ctx, s.name, metav1.GetOptions{})
	s.Must(err, "read the leader lease")
	lease.Spec.HolderIdentity = ptr.To("")
	_, err = leases.Update(s.Ctx, lease, metav1.UpdateOptions{})
	s.Must(err, "write the leader lease")
}

func TestEntryOutlivesOnlyOpenCalls(t *testing.T) {
	s := startFixture(t, exeunt)
	s.setResult(provisioned, answerLost)
	claim := s.CreateClaim("claim", s.name)
	s.Until("Provision was called", func() bool { return s.count(provisioned, volumeOf(claim)) > 0 })
	if entries := s.entries(journal.KindActive); len(entries) != 1 || entries[0].UID != claim.UID {
		t.Errorf("entries while the call is open: %+v, want that of the claim", entries)
	}
	s.succeed()
	s.AwaitBound(claim.Name)
	s.expectEmptyJournal()
}

func TestNonIdempotentCallIsNotRepeated(t *testing.T) {
	harness.Parallel(t, withoutProvisioner)
	for name, alive := range map[string]bool{"claim deleted": false, "claim lives": true} {
		t.Run(name, func(t *testing.T) {
			s := startFixture(t, exeunt, func(how *settings) { how.NonIdempotent = true })
			claim := s.killAfterProvision()
			if !alive {
				s.DeleteClaim(claim.Name)
				s.AwaitClaimGone(claim.Name)
			}
			calls := s.count(provisioned, volumeOf(claim))
			s.start()
			s.Until("the entry is unresolved", func() bool { return len(s.entries(journal.KindUnresolved)) == 1 })
			if reason := s.entries(journal.KindUnresolved)[0].Unresolved.Reason; !strings.Contains(reason, volumeOf(claim)) {
				t.Errorf("the reason does not name the volume: %s", reason)
			}
			if alive {
				s.AwaitBound(claim.Name)
				return
			}
			s.passQueues()
			if now := s.count(provisioned, volumeOf(claim)); now != calls {
				t.Errorf("Provision was called %d times again", now-calls)
			}
			if list := s.journalCommand("list"); !strings.Contains(list, volumeOf(claim)) {
				t.Errorf("the list lacks the volume:\n%s", list)
			}
			s.journalCommand("drop", string(claim.UID), "--yes")
			s.Until("the entry is gone", func() bool { return len(s.entries(journal.KindUnresolved)) == 0 })
		})
	}
}

// journalCommand runs "exeunt journal" as the administrator.
func (s *fixture) journalCommand(args ...string) string {
	s.T.Helper()
	program, err := harness.Binaries().Path("exeunt")
	s.Must(err, "find exeunt")
	output, err := exec.CommandContext(s.Ctx, program,
		append([]string{"journal", "--kubeconfig=" + s.Plane.AdminKubeconfig}, args...)...).CombinedOutput()
	if err != nil {
		s.T.Fatalf("exeunt journal %v: %v: %s", args, err, output)
	}
	return string(output)
}

// Another process takes the lease, as when this one was cut off from the API server.
func TestLostLeaseEndsTheProcess(t *testing.T) {
	s := startFixture(t, exeunt, func(how *settings) { how.Elected = true })
	s.AwaitBound(s.CreateClaim("claim", s.name).Name)
	leases := s.Client.CoordinationV1().Leases(account)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		lease, err := leases.Get(s.Ctx, s.name, metav1.GetOptions{})
		s.Must(err, "read the leader lease")
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = ptr.To("another"), &metav1.MicroTime{Time: time.Now()}
		_, err = leases.Update(s.Ctx, lease, metav1.UpdateOptions{})
		return err
	})
	s.Must(err, "take the leader lease")
	s.awaitExit()
	if err := s.process.Err(); err == nil || !strings.Contains(err.Error(), "the leader lease was lost") {
		t.Errorf("the process ended with %v", err)
	}
}

// awaitWatch waits until a claim has a volume: the process sees the creation of later claims, and deletes volumes of
// theirs that it cannot use.
func (s *fixture) awaitWatch() {
	s.T.Helper()
	s.AwaitBound(s.CreateClaim("first", s.name).Name)
}

// The volume cannot be recorded. The process is killed while it deletes the volume.
func TestUnusableVolumeIsDeletedAfterCrash(t *testing.T) {
	s := startFixture(t, exeunt)
	s.awaitWatch()
	s.setReaction(func(c call) result {
		if c.method == deleting {
			s.kill()
		}
		return incomplete
	})
	claim := s.CreateClaim("claim", s.name)
	s.awaitExit()
	if entries := s.entries(journal.KindActive); len(entries) != 1 || entries[0].State != journal.Discarding {
		t.Errorf("entries: %+v, want one that is %s", entries, journal.Discarding)
	}
	s.DeleteClaim(claim.Name)
	s.AwaitClaimGone(claim.Name)
	s.succeed()
	s.start()
	s.Until("nothing is leaked", func() bool { return len(s.leaked()) == 0 })
	s.expectEmptyJournal()
}

func TestUnusableVolumeIsCreatedAnew(t *testing.T) {
	s := startFixture(t, exeunt)
	s.awaitWatch()
	s.setResult(provisioned, incomplete)
	claim := s.CreateClaim("claim", s.name)
	s.Until("the volume is deleted", func() bool { return s.count(deleted, volumeOf(claim)) > 0 })
	s.succeed()
	volume := s.AwaitBound(claim.Name)
	if !s.stored(directory(volume)) {
		t.Error("the volume of the claim does not exist")
	}
}

func TestGuardsAreAsked(t *testing.T) {
	s := startFixture(t, exeunt, func(how *settings) { how.Guarded = true })
	s.setResult(shouldProvision, declined)
	claim := s.CreateClaim("claim", s.name)
	s.Until("ShouldProvision was called twice", func() bool { return s.count(shouldProvision, volumeOf(claim)) > 1 })
	if calls := s.count(provisioned, volumeOf(claim)); calls > 0 {
		t.Errorf("Provision was called %d times for an unqualified claim", calls)
	}
	s.setResult(shouldDelete, declined)
	volume := s.AwaitBound(claim.Name)
	s.DeleteClaim(claim.Name)
	s.Until("ShouldDelete was called twice", func() bool { return s.count(shouldDelete, volume.Name) > 1 })
	if calls := s.count(deleting, volume.Name); calls > 0 {
		t.Errorf("Delete was called %d times for a guarded volume", calls)
	}
	s.succeed()
	s.AwaitVolumeGone(volume.Name)
	if s.stored(directory(volume)) {
		t.Error("the volume is left behind")
	}
}

func TestEventsOfFailures(t *testing.T) {
	s := startFixture(t, exeunt)
	s.setResult(provisioned, answerLost)
	claim := s.CreateClaim("claim", s.name)
	s.awaitEvent(claim, "ProvisioningFailed", "the storage system did not answer in time")
	s.succeed()
	volume := s.AwaitBound(claim.Name)
	s.awaitEvent(claim, "ProvisioningSucceeded", volume.Name)
	s.setResult(deleting, fails)
	s.DeleteClaim(claim.Name)
	s.awaitEvent(volume, "VolumeFailedDelete", "the directory is busy")
	s.succeed()
	s.AwaitVolumeGone(volume.Name)
}

// The scheduler selects another node once the first one is full.
func TestFullNodeIsGivenUp(t *testing.T) {
	harness.Parallel(t, withoutProvisioner)
	for _, on := range engines {
		t.Run(string(on), func(t *testing.T) {
			s := startFixture(t, on)
			s.setResult(provisioned, unfitNode)
			class := s.name + "-wait"
			s.createClass(class, remove, storagev1.VolumeBindingWaitForFirstConsumer)
			node, err := s.Client.CoreV1().Nodes().Create(s.Ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.name}},
				metav1.CreateOptions{})
			s.Must(err, "create node")
			claim := s.NewClaim("claim", class)
			claim.Annotations = map[string]string{storage.AnnSelectedNode: node.Name}
			claim, err = s.Client.CoreV1().PersistentVolumeClaims(s.name).Create(s.Ctx, claim, metav1.CreateOptions{})
			s.Must(err, "create claim")
			s.Until("no node is selected", func() bool {
				now, err := s.Client.CoreV1().PersistentVolumeClaims(s.name).Get(s.Ctx, claim.Name, metav1.GetOptions{})
				s.Must(err, "read claim")
				return now.Annotations[storage.AnnSelectedNode] == ""
			})
			s.awaitEvent(claim, "ProvisioningFailed", "the node is full")
			s.succeed()
			s.selectNode(claim.Name, node.Name)
			s.AwaitBound(claim.Name)
		})
	}
}

// selectNode selects a node as the scheduler does.
func (s *fixture) selectNode(claim, node string) {
	s.T.Helper()
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, storage.AnnSelectedNode, node)
	_, err := s.Client.CoreV1().PersistentVolumeClaims(s.name).
		Patch(s.Ctx, claim, types.MergePatchType, body, metav1.PatchOptions{})
	s.Must(err, "select node")
}

func TestBlockVolumeIsRefused(t *testing.T) {
	s := startFixture(t, exeunt)
	claim := s.NewClaim("claim", s.name)
	claim.Spec.VolumeMode = ptr.To(v1.PersistentVolumeBlock)
	claim, err := s.Client.CoreV1().PersistentVolumeClaims(s.name).Create(s.Ctx, claim, metav1.CreateOptions{})
	s.Must(err, "create claim")
	s.awaitEvent(claim, "ProvisioningFailed", "does not support block volume provisioning")
	if calls := s.count(provisioned, volumeOf(claim)); calls > 0 {
		t.Errorf("Provision was called %d times", calls)
	}
}

// An administrator saves the directory with a static volume, which names no provisioner.
func TestDirectoryOfAStaticVolumeIsKept(t *testing.T) {
	harness.Parallel(t, withoutProvisioner)
	for name, inside := range map[string]string{"the same directory": "", "a directory in it": "/saved"} {
		t.Run(name, func(t *testing.T) { keepStaticVolume(t, inside) })
	}
}

// keepStaticVolume has a static volume at a path inside the directory of a volume.
func keepStaticVolume(t *testing.T, inside string) {
	t.Helper()
	s := startFixture(t, exeunt)
	volume := s.AwaitBound(s.CreateClaim("claim", s.name).Name)
	saved := s.CreateVolume("saved", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Spec.StorageClassName = s.name + "-static"
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: directory(volume) +
			inside}}
	})
	s.DeleteClaim("claim")
	s.awaitEvent(volume, "VolumeHandleShared", saved.Name)
	if !s.stored(directory(volume)) {
		t.Error("the directory that the static volume has was deleted")
	}
	s.Must(s.Client.CoreV1().PersistentVolumes().Delete(s.Ctx, saved.Name, metav1.DeleteOptions{}),
		"delete the static volume")
	s.AwaitVolumeGone(volume.Name)
	if s.stored(directory(volume)) {
		t.Error("the directory is left behind")
	}
}

// awaitEvent waits for an event of the object whose message has the text.
func (s *fixture) awaitEvent(object metav1.Object, reason, text string) {
	s.T.Helper()
	s.Until("there is an event "+reason+" with "+text, func() bool {
		list, err := s.Client.CoreV1().Events(metav1.NamespaceAll).
			List(s.Ctx, metav1.ListOptions{FieldSelector: "reason=" + reason})
		s.Must(err, "list events")
		return slices.ContainsFunc(list.Items, func(e v1.Event) bool {
			return e.InvolvedObject.UID == object.GetUID() && strings.Contains(e.Message, text)
		})
	})
}
