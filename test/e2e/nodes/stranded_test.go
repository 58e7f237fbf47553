package nodes

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
)

const daemonWithDisk = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: APP, namespace: NAMESPACE}
spec:
  selector: {matchLabels: {app: APP}}
  template:
    metadata: {labels: {app: APP}}
    spec:
      nodeSelector: {APP: ""}
      tolerations: [{operator: Exists}]
      containers: [{name: main, image: image, volumeMounts: [{name: data, mountPath: /data}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: APP}}]
`

// diskOfDaemon ends a node on which nobody unmounts the disk: long before the deadline the machine is stopped, and only
// then deleted, for a cloud may delete with a machine the disks that are attached to it.
func diskOfDaemon(t *testing.T, e *ending) {
	name := e.take("15m")
	e.seen(name)
	e.withDisk(name)
	e.fit(name, name)
	e.apply(strings.ReplaceAll(daemonWithDisk, "APP", name))
	pod := e.awaitReady(name, 1)[0]
	e.delete(name)
	e.expectStrandedEnd(t, name, e.disk(name))
	if now := e.getPod(pod.Name); now != nil && now.UID == pod.UID {
		t.Error("the pod is left")
	}
}

// expectStrandedEnd wants the machine stopped although the deadline is far, the disk detached, and the machine deleted.
func (e *ending) expectStrandedEnd(t *testing.T, name, disk string) {
	e.T.Helper()
	requested := e.node(name).DeletionTimestamp.Time
	off := e.power(name)
	if after := off.Time.Sub(requested); after > time.Minute {
		t.Errorf("the machine was stopped after %v", after)
	}
	message := e.awaitNodeEvent(name, "DeadlineReached")
	if !strings.Contains(message, "that nobody waits for") {
		t.Errorf("event %q", message)
	}
	detached := e.AwaitEvent(machines.Event{Volume: disk, Event: machines.Detached})
	if detached.Time.Before(off.Time) {
		t.Error("the disk was detached from a running machine")
	}
	e.awaitGone(name)
}

// inlineVolume ends a node with an attachment of a volume that is written in a pod: no controller detaches it.
func inlineVolume(t *testing.T, e *ending) {
	name := e.take("15m")
	e.seen(name)
	uid := e.node(name).UID
	attached := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "inline-" + name},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: machines.DriverName, NodeName: name,
			Source: storagev1.VolumeAttachmentSource{InlineVolumeSpec: &v1.PersistentVolumeSpec{
				AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
				PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
					Driver: machines.DriverName, VolumeHandle: "inline-" + name}}}}}}
	attachments := e.Client.StorageV1().VolumeAttachments()
	_, err := attachments.Create(e.Ctx, attached, metav1.CreateOptions{})
	e.Must(err, "create attachment")
	e.pod(name, "web")
	e.delete(name)
	e.power(name)
	e.awaitNodeEvent(name, "DetachNotStarted")
	if report := e.report(uid); len(report.Volumes) != 1 || report.Volumes[0].Attachment != attached.Name {
		t.Errorf("the report does not name the attachment: %+v", report)
	}
	e.Must(attachments.Delete(e.Ctx, attached.Name, metav1.DeleteOptions{}), "delete attachment")
	e.awaitGone(name)
	e.awaitPhase(uid, termination.PhaseEnded)
}
