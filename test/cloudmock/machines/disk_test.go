package machines

import (
	"strings"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// newDisk returns a volume with the handle "disk", and its claim.
func newDisk() []runtime.Object {
	return []runtime.Object{
		&v1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "volume"},
			Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{
				CSI: &v1.CSIPersistentVolumeSource{Driver: DriverName, VolumeHandle: "disk"}}},
		},
		&v1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim"},
			Spec:       v1.PersistentVolumeClaimSpec{VolumeName: "volume"},
			Status:     v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound},
		},
	}
}

// writer returns a pod that uses the disk on a machine.
func writer(name, node string) *v1.Pod {
	pod := newPod(name)
	pod.Spec.NodeName = node
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}}}
	return pod
}

// request asks the attacher to attach the disk to a machine, as the attach-detach controller does.
func (w *world) request(node string) {
	w.Helper()
	_, err := w.Cloud.client.StorageV1().VolumeAttachments().Create(w.Context(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "to-" + node},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: DriverName, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("volume")}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

// release deletes an attachment, which its finalizer keeps until the disk is detached.
func (w *world) release(node string) {
	w.Helper()
	attachment := w.attachment(node)
	attachment.DeletionTimestamp = new(metav1.Now())
	_, err := w.client.StorageV1().VolumeAttachments().Update(w.Context(), attachment, metav1.UpdateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

func (w *world) attachment(node string) *storagev1.VolumeAttachment {
	w.Helper()
	attachment, err := w.client.StorageV1().VolumeAttachments().Get(w.Context(), "to-"+node, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return attachment
}

// inUse returns Node.status.volumesInUse of a machine.
func (w *world) inUse(node string) string {
	w.Helper()
	object, err := w.client.CoreV1().Nodes().Get(w.Context(), node, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	var names []string
	for _, name := range object.Status.VolumesInUse {
		names = append(names, string(name))
	}
	return strings.Join(names, " ")
}

func TestDiskIsMountedOnceAttachedAndUnmountedAtTheEnd(t *testing.T) {
	inWorld(t, Config{Nodes: 1}, newDisk(), func(w *world) {
		w.create(writer("db", "mock-0"))
		w.at(1)
		w.request("mock-0")
		if got, want := w.inUse("mock-0"), "kubernetes.io/csi/"+DriverName+"^disk"; got != want {
			t.Errorf("volumes in use: %q, want %q", got, want)
		}
		w.at(2)
		w.setGrace("db", 30)
		w.at(20)
		if got := w.inUse("mock-0"); got != "" {
			t.Errorf("volumes in use after the end: %q", got)
		}
		w.release("mock-0")
		if got := w.attachment("mock-0").Finalizers; len(got) > 0 {
			t.Errorf("finalizers of a detached disk: %v", got)
		}
		w.expect("1 disk mock-0 attached, 1 db disk mounted, 1 db started, 2 db sigterm, 2 db exited, " +
			"2 db disk unmounted, 20 disk mock-0 detached")
	})
}

func TestSecondAttachmentIsRefused(t *testing.T) {
	inWorld(t, Config{Nodes: 2}, newDisk(), func(w *world) {
		w.request("mock-0")
		w.request("mock-1")
		status := w.attachment("mock-1").Status
		if status.Attached || status.AttachError == nil ||
			status.AttachError.Message != "disk disk is attached to machine mock-0" {
			t.Errorf("second attachment: %+v", status)
		}
		w.release("mock-0")
		w.at(5)
		if status := w.attachment("mock-1").Status; !status.Attached || status.AttachError != nil {
			t.Errorf("second attachment once the disk is detached: %+v", status)
		}
		w.expect("0 disk mock-0 attached, 0 disk mock-0 detached, 0.2 disk mock-1 attached")
	})
}

func TestDiskOfRunningWriterHasTwoWriters(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(w *world)
		want string
	}{
		"kubelet is dead":       {func(w *world) { w.faults("kubeletDead") }, "1 db disk twoWriters"},
		"kubelet is cut off":    {func(w *world) { w.faults("partition") }, "1 db disk twoWriters"},
		"socket lies":           {func(w *world) { w.faults("lies"); w.call(provider.Stop) }, "1 db disk twoWriters"},
		"machine is off":        {func(w *world) { w.call(provider.Stop) }, ""},
		"machine does not end":  {func(w *world) { w.faults("stopFails"); w.call(provider.Stop) }, "1 db disk twoWriters"},
		"machine is still ends": {func(w *world) { w.faults("stopTakes 9"); w.call(provider.Stop) }, "1 db disk twoWriters"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, Config{Nodes: 2}, newDisk(), func(w *world) {
				w.create(writer("db", "mock-0"))
				w.request("mock-0")
				tc.end(w)
				w.at(1)
				w.release("mock-0")
				w.request("mock-1")
				if got := w.story(); strings.Contains(got, "twoWriters") != (tc.want != "") || !strings.Contains(got, tc.want) {
					t.Errorf("happened: %s, want %q", got, tc.want)
				}
			})
		})
	}
}

func TestSecondMountOnRunningMachineHasTwoWriters(t *testing.T) {
	inWorld(t, Config{Nodes: 2}, newDisk(), func(w *world) {
		w.create(writer("first", "mock-0"))
		w.request("mock-0")
		w.faults("kubeletDead")
		w.release("mock-0")
		w.request("mock-1")
		w.create(writer("second", "mock-1"))
		w.expect("0 disk mock-0 attached, 0 first disk mounted, 0 first started, 0 disk mock-0 detached, " +
			"0 disk mock-1 attached, 0 first disk twoWriters, 0 second disk mounted, 0 first disk twoWriters, 0 second started")
	})
}

func TestDiskThatCannotBeDetachedStaysAttached(t *testing.T) {
	inWorld(t, Config{Nodes: 1}, newDisk(), func(w *world) {
		w.request("mock-0")
		w.faults("detachFails")
		w.release("mock-0")
		w.at(10)
		attachment := w.attachment("mock-0")
		if !attachment.Status.Attached || attachment.Status.DetachError == nil || len(attachment.Finalizers) != 1 {
			t.Errorf("attachment: %+v", attachment)
		}
		w.faults()
		w.expect("0 disk mock-0 attached, 10 disk mock-0 detached")
	})
}

func TestDeletedMachineTakesItsDisksAlong(t *testing.T) {
	inWorld(t, Config{Nodes: 2}, newDisk(), func(w *world) {
		w.request("mock-0")
		w.call(provider.Delete)
		w.release("mock-0")
		w.request("mock-1")
		failed := w.attachment("mock-1").Status.AttachError
		if failed == nil || failed.Message != "disk disk was deleted with machine mock-0" {
			t.Errorf("attach of a deleted disk: %+v", failed)
		}
		w.expect("0 disk mock-0 attached, 0 mock-0 poweroff, 0 disk mock-0 detached")
	})
}

func TestDiskOfInterruptedMachineStays(t *testing.T) {
	inWorld(t, Config{Nodes: 2}, newDisk(), func(w *world) {
		w.request("mock-0")
		w.faults("deleted")
		w.release("mock-0")
		w.request("mock-1")
		w.expect("0 disk mock-0 attached, 0 mock-0 poweroff, 0 disk mock-0 detached, 0 disk mock-1 attached")
	})
}

func TestDisksNeedTheDriversPod(t *testing.T) {
	inWorld(t, Config{Nodes: 1, DriverPodRequired: true}, newDisk(), func(w *world) {
		w.create(writer("db", "mock-0"))
		w.request("mock-0")
		w.at(1)
		driver := newPod("driver")
		driver.Labels = map[string]string{"app": DriverApp}
		w.create(driver)
		w.at(2)
		w.setGrace("driver", 30)
		w.at(3)
		w.setGrace("db", 30)
		w.at(4)
		next := driver.DeepCopy()
		next.Name, next.UID = "driver-2", types.UID("driver-2")
		w.create(next)
		w.expect("0 disk mock-0 attached, 1 driver started, 1 db disk mounted, 1 db started, 2 driver sigterm, " +
			"2 driver exited, 3 db sigterm, 3 db exited, 4 driver-2 started, 4 db disk unmounted")
	})
}

func TestMachineThatHadTheDriversPodNeedsOne(t *testing.T) {
	inWorld(t, Config{Nodes: 2}, newDisk(), func(w *world) {
		driver := newPod("driver")
		driver.Labels = map[string]string{"app": DriverApp}
		w.create(driver)
		w.setGrace("driver", 30)
		w.request("mock-0")
		w.create(writer("db", "mock-0"))
		w.at(1)
		w.forget("db")
		w.release("mock-0")
		w.request("mock-1")
		w.create(writer("next", "mock-1"))
		w.expect("0 driver started, 0 driver sigterm, 0 driver exited, 0 disk mock-0 attached, 1 disk mock-0 detached, " +
			"1 disk mock-1 attached, 1 next disk mounted, 1 next started")
	})
}

func TestAttachmentOfEarlierProcessIsKnown(t *testing.T) {
	objects := append(newDisk(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "to-mock-0", Finalizers: []string{attachFinalizer}},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: DriverName, NodeName: "mock-0",
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("volume")}},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	})
	inWorld(t, Config{Nodes: 2}, objects, func(w *world) {
		w.request("mock-1")
		if failed := w.attachment("mock-1").Status.AttachError; failed == nil {
			t.Error("a disk that was attached before is attached again")
		}
	})
}

func TestDiskIsDetachedAfterItsVolumeIsGone(t *testing.T) {
	inWorld(t, Config{Nodes: 1}, newDisk(), func(w *world) {
		w.request("mock-0")
		if err := w.client.CoreV1().PersistentVolumes().Delete(w.Context(), "volume", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.release("mock-0")
		w.expect("0 disk mock-0 attached, 0 disk mock-0 detached")
	})
}
