package teardown

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	core "github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// backUp copies the data of etcd, which is stopped for it.
func (r *rig) backUp(name string) string {
	r.T.Helper()
	backup := filepath.Join(r.Dir, "backup-"+name)
	r.Must(r.Plane.Restart(r.Ctx, func() error { return r.Plane.SaveEtcd(backup) }), "save etcd")
	return backup
}

// restore restores etcd, and starts kube-controller-manager again, as the documentation of Kubernetes says.
func (r *rig) restore(backup string) {
	r.T.Helper()
	r.Must(r.Plane.Restart(r.Ctx, func() error { return r.Plane.RestoreEtcd(r.Ctx, backup, 1_000_000_000) }), "restore etcd")
	r.Must(r.RestartLoops(r.Ctx), "start kube-controller-manager again")
}

// holdClaim sets the finalizers of a claim that is used by nobody but them.
func (r *rig) holdClaim(name string, finalizers ...string) {
	r.T.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
	r.Must(err, "encode finalizers")
	_, err = r.Client.CoreV1().PersistentVolumeClaims(r.Namespace).Patch(r.Ctx, name, types.MergePatchType, body,
		metav1.PatchOptions{})
	r.Must(err, "set finalizers")
}

// runUntil runs the work of an earlier command, without a word of a person, until it ends or is where the test wants it.
func (r *rig) runUntil(wanted func(runner.Progress) bool) *runner.Outcome {
	r.T.Helper()
	ctx, stop := context.WithCancel(r.Ctx)
	defer stop()
	config := r.config()
	follow := config.Follow
	config.Follow = func(p runner.Progress) {
		follow(p)
		if wanted(p) {
			stop()
		}
	}
	outcome, err := runner.New(config).Run(ctx)
	if err != nil && ctx.Err() == nil {
		r.T.Fatalf("the runner ended with %v", err)
	}
	return outcome
}

func never(runner.Progress) bool { return false }

func (r *rig) deletions() int {
	r.T.Helper()
	return r.CountDriverCalls(r.Driver, "DeleteVolume")
}

// Row 63, and a backup from after the end: a restored cluster is not torn down again, and loses nothing that is new.
func TestRestoredClusterLivesUntilSomebodyConfirms(t *testing.T) {
	b := newBucketRig(t)
	data, archive := b.addDynamic("data", harness.DeleteClass), keep(b.addDynamic("archive", harness.RetainClass))
	old := b.makeBucket()
	b.arm()
	before := b.backUp("before")
	b.mustComplete()
	b.expectDisks(data, archive)
	b.expectBuckets(false, old)
	after := b.backUp("after")
	b.admin(0, "remove")
	newer := keep(b.addDynamic("newer", harness.DeleteClass))

	b.restore(after)
	b.mustComplete() // the record says so
	if !b.isFrozen() || !b.IsStored(newer.handle) {
		t.Errorf("restored from after the end: frozen %t, the newer disk is stored: %t", b.isFrozen(), b.IsStored(newer.handle))
	}

	b.restore(before)
	count := b.deletions()
	b.runUntil(func(p runner.Progress) bool { return p.Reason == core.AwaitingDeletion })
	if one := b.aliveNow(); one.IsDeleted() || b.isFrozen() {
		t.Errorf("restored from before the deletion: frozen %t, Alive %+v", b.isFrozen(), one)
	}
	made, young := b.makeBucket(), b.addDynamic("young", harness.DeleteClass)
	if b.deletions() != count || !b.IsStored(newer.handle) {
		t.Errorf("%d calls of DeleteVolume, before %d", b.deletions(), count)
	}
	b.mustComplete()
	b.expectDisks(young, archive)
	b.expectBuckets(false, made)
	if !b.IsStored(newer.handle) {
		t.Error("the disk that the restored cluster does not know is gone")
	}
}

// Row 64: the backup is from amid the teardown, which somebody aborted since.
func TestRestoredTeardownIsPaused(t *testing.T) {
	b := newBucketRig(t)
	held, archive := b.addDynamic("held", harness.DeleteClass), keep(b.addDynamic("archive", harness.RetainClass))
	late := b.in("bucket-operator").addDynamic("late", harness.DeleteClass) // of an unopened wave
	bucket := b.makeBucket()
	b.killOperator()
	b.holdClaim("held", "kubernetes.io/pvc-protection", "example.com/backup")
	b.runUntilDeleted("held")
	backup := b.backUp("amid")
	_, err := runner.New(b.config()).Abort(b.Ctx)
	b.Must(err, "abort")

	b.restore(backup)
	b.waits.Pause = time.Second
	if outcome := b.runUntil(never); outcome == nil || outcome.Phase != core.Stopped || outcome.Reason != core.Paused {
		t.Errorf("the restored teardown: %+v", outcome)
	}
	b.patchAlive(`{"spec":{"confirmedAt":"` + time.Now().Add(-2*time.Hour).UTC().Format(time.RFC3339) + `"}}`) // an older backup
	b.beginOperator()
	young := b.makeBucket()
	if outcome := b.runUntil(never); outcome == nil || outcome.Phase != core.Stopped || outcome.Reason != core.Expired {
		t.Errorf("the restored teardown without time left: %+v", outcome)
	}
	b.expectBuckets(true, bucket, young)
	b.expectDisks(keep(held), keep(late), archive)
	if b.deletions() > 0 || !b.isFrozen() {
		t.Errorf("%d calls of DeleteVolume, frozen: %t", b.deletions(), b.isFrozen())
	}

	b.waits.Pause = runner.DefaultWaits().Pause // the word is truncated to a second
	b.holdClaim("held")
	b.mustComplete()
	b.expectBuckets(false, bucket, young)
	b.expectDisks(held, late, archive)
}

// runUntilDeleted runs the command until a claim is deleted, and interrupts it.
func (r *rig) runUntilDeleted(claim string) {
	r.T.Helper()
	ctx, interrupt := context.WithCancel(r.Ctx)
	defer interrupt()
	ended := make(chan error, 1)
	go func() {
		_, err := r.tearDown(ctx)
		ended <- err
	}()
	r.AwaitClaim(claim, "is deleted", func(c *v1.PersistentVolumeClaim) bool { return c.DeletionTimestamp != nil })
	interrupt()
	if err := <-ended; err == nil {
		r.T.Fatal("the command ended before it was interrupted")
	}
}

// Row 63: etcd is restored while the command works. It ends, and deletes nothing more.
func TestCommandEndsWithRestoreOfOlderBackup(t *testing.T) {
	setup := stock
	setup.Restarts = true
	r := newRig(t, setup)
	held := r.addDynamic("held", harness.DeleteClass)
	r.holdClaim("held", "kubernetes.io/pvc-protection", "example.com/backup")
	r.arm()
	before := r.backUp("before")
	ended := make(chan error, 1)
	go func() {
		outcome, err := r.tearDown(r.Ctx)
		t.Logf("the command ended with %+v", outcome)
		ended <- err
	}()
	r.AwaitClaim("held", "is deleted", func(c *v1.PersistentVolumeClaim) bool { return c.DeletionTimestamp != nil })
	r.restore(before)
	select {
	case err := <-ended:
		if !errors.Is(err, runner.ErrRestored) {
			t.Errorf("the command ended with %v", err)
		}
	case <-r.Ctx.Done():
		t.Fatalf("the command did not end before %v", <-ended)
	}
	r.expectDisks(keep(held))
	if one := r.aliveNow(); one.IsDeleted() || r.isFrozen() || r.deletions() > 0 {
		t.Errorf("frozen %t, %d calls of DeleteVolume, Alive %+v", r.isFrozen(), r.deletions(), one)
	}
}
