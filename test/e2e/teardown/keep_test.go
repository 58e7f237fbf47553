package teardown

import (
	"context"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// disk is a disk with the claim and PersistentVolume that lead to it.
type disk struct {
	name, handle, volume string
	stays                bool
}

// addStatic creates a disk, a volume that no provisioner made, and its claim.
func (r *rig) addStatic(name string) disk {
	r.T.Helper()
	handle := r.CreateStoredVolume(name)
	volume := r.CreateVolume(handle, v1.PersistentVolumeReclaimDelete)
	r.CreateClaim(name, r.Namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = volume.Name })
	r.AwaitBound(name)
	return disk{name: name, handle: handle, volume: volume.Name, stays: true}
}

// addDynamic creates a claim, and waits for its volume.
func (r *rig) addDynamic(name, class string, change ...func(*v1.PersistentVolumeClaim)) disk {
	r.T.Helper()
	r.CreateClaim(name, class, change...)
	volume := r.AwaitBound(name)
	return disk{name: name, handle: harness.Handle(volume), volume: volume.Name}
}

// keep says that a disk is to stay.
func keep(d disk) disk {
	d.stays = true
	return d
}

func (r *rig) labelVolume(name string) {
	r.T.Helper()
	_, err := r.Client.CoreV1().PersistentVolumes().Patch(r.Ctx, name, types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+alive.PreserveLabel+`":""}}}`), metav1.PatchOptions{})
	r.Must(err, "label a volume")
}

func preserved(c *v1.PersistentVolumeClaim) {
	c.Labels = map[string]string{alive.PreserveLabel: ""}
}

// expectDisks checks that the disks that are to stay are stored, with their volumes, and the others are gone.
func (r *rig) expectDisks(disks ...disk) {
	r.T.Helper()
	for _, d := range disks {
		if stored := r.IsStored(d.handle); stored != d.stays {
			r.T.Errorf("disk %s: stored: %t, want %t", d.name, stored, d.stays)
		}
		_, err := r.Client.CoreV1().PersistentVolumes().Get(r.Ctx, d.volume, metav1.GetOptions{})
		if exists := err == nil; exists != d.stays {
			r.T.Errorf("volume of %s exists: %t (%v), want %t", d.name, exists, err, d.stays)
		}
	}
}

// Rows 02 to 05, 09, 11, 12, 14, 20 and 22 of volumes.
func TestEachDiskGoesOrStaysByItsRow(t *testing.T) {
	r := newRig(t, stock)
	labeled := r.addDynamic("labeled-volume", harness.DeleteClass)
	r.labelVolume(labeled.volume)
	twin := r.addDynamic("twin", harness.DeleteClass)
	r.CreateVolume(twin.handle, v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) { v.Name = "other-twin" })
	terminating := r.addDynamic("terminating-volume", harness.DeleteClass)
	r.DeleteVolume(terminating.volume)
	released := r.addDynamic("released", harness.RetainClass)
	r.DeleteClaim("released")
	r.AwaitVolume(released.volume, "is Released", func(v *v1.PersistentVolume) bool {
		return v.Status.Phase == v1.VolumeReleased
	})
	finished := r.addDynamic("used-by-finished-pod", harness.DeleteClass)
	r.finish(r.createUser("finished", finished.name))
	deleting := r.addDynamic("deleted-before", harness.DeleteClass)
	r.createUser("user-of-deleted", deleting.name)
	r.DeleteClaim(deleting.name)
	r.CreateClaim("unrequested", harness.WaitClass)
	disks := []disk{
		r.addStatic("static"), keep(labeled),
		keep(r.addDynamic("labeled-claim", harness.DeleteClass, preserved)),
		keep(twin), terminating, keep(released), finished, deleting,
		keep(r.addEphemeral("ephemeral-kept", harness.RetainClass)), r.addEphemeral("ephemeral", harness.DeleteClass),
		r.addDynamic("unused", harness.DeleteClass), keep(r.addInKeptNamespace()),
	}
	r.mustComplete()
	r.expectDisks(disks...)
	if _, err := r.Client.CoreV1().PersistentVolumeClaims(r.Namespace).Get(r.Ctx, "unrequested",
		metav1.GetOptions{}); err == nil {
		t.Error("the claim that nobody provisions is left")
	}
}

// Rows 06 and 07: users change their minds while a pod that writes is stopped.
func TestUserKeepsDiskWhileItsPodStops(t *testing.T) {
	r := newRig(t, stock)
	saved, kept := r.addDynamic("saved", harness.DeleteClass), r.addDynamic("kept", harness.RetainClass)
	labeled := r.addDynamic("labeled", harness.DeleteClass)
	r.createUser("writer", saved.name, kept.name, labeled.name)
	changed := false
	r.mustComplete(func(c *runner.Config) {
		c.Follow = func(p runner.Progress) {
			if p.Phase != "TearingDown" || changed {
				return
			}
			changed = true
			r.SetPolicy(saved.volume, v1.PersistentVolumeReclaimRetain)
			r.SetPolicy(kept.volume, v1.PersistentVolumeReclaimDelete)
			r.labelVolume(labeled.volume)
		}
	})
	if !changed {
		t.Error("the teardown ended before the user changed anything")
	}
	r.expectDisks(keep(saved), keep(kept), keep(labeled))
}

// addEphemeral creates a pod with an ephemeral volume of the class.
func (r *rig) addEphemeral(name, class string) disk {
	r.T.Helper()
	claim := r.NewClaim(name, class)
	_, err := r.Client.CoreV1().Pods(r.Namespace).Create(r.Ctx, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{NodeName: "node", TerminationGracePeriodSeconds: new(int64(1)),
			Containers: []v1.Container{{Name: "main", Image: "image"}},
			Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{
				VolumeClaimTemplate: &v1.PersistentVolumeClaimTemplate{Spec: claim.Spec}}}}}}}, metav1.CreateOptions{})
	r.Must(err, "create pod with an ephemeral volume")
	volume := r.AwaitBound(name + "-data")
	return disk{name: name, handle: harness.Handle(volume), volume: volume.Name}
}

// addInKeptNamespace creates a claim in a namespace with the label.
func (r *rig) addInKeptNamespace() disk {
	r.T.Helper()
	_, err := r.Client.CoreV1().Namespaces().Create(r.Ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept",
		Labels: map[string]string{alive.PreserveLabel: ""}}}, metav1.CreateOptions{})
	r.Must(err, "create namespace")
	other := *r.Session
	other.Namespace = "kept"
	other.CreateClaim("in-kept-namespace", harness.DeleteClass)
	volume := other.AwaitBound("in-kept-namespace")
	return disk{name: "in-kept-namespace", handle: harness.Handle(volume), volume: volume.Name}
}

// finish says that a pod has ended by itself.
func (r *rig) finish(pod *v1.Pod) {
	r.T.Helper()
	_, err := r.Client.CoreV1().Pods(pod.Namespace).Patch(context.WithoutCancel(r.Ctx), pod.Name, types.MergePatchType,
		[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	r.Must(err, "end a pod")
}
