package nodes

import (
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// TestLeaderKilled ends the program amid terminations, and begins it again.
func TestLeaderKilled(t *testing.T) {
	e := startEnding(t, 6, "--instances=socket", "--instances-socket=SOCKET") // two for the pods of others
	kill := func() {
		e.Must(e.terminator.Kill(), "kill node-terminator")
		<-e.terminator.Done()
		e.begin()
	}
	uids := map[string]types.UID{}
	for i, period := range []string{"15m", "10s", "20s", "30s"} {
		name := e.take(period)
		e.seen(name)
		if i == 0 {
			e.pod(name, "web", annotated("cloudmock.exeunt.io/exit-after", "6s"))
		} else {
			e.pod(name, "db", stuck, grace(3600), e.withDisk(name))
			e.fault(machines.Fault{Node: name, Kind: machines.Partition})
		}
		uids[name] = e.node(name).UID
		e.delete(name)
	}
	for off := range 3 {
		kill()
		e.Until("one more machine is off", func() bool {
			return len(e.Events(machines.Event{Event: machines.PowerOff})) > off
		})
	}
	kill()
	for name, uid := range uids {
		e.awaitGone(name)
		e.awaitPhase(uid, termination.PhaseEnded)
	}
	e.expectNever(machines.Event{Event: machines.TwoWriters})
}

// TestStopUnsupported ends a node whose provider can only delete machines.
func TestStopUnsupported(t *testing.T) {
	e := startEndingWith(t, harness.Setup{MachineFlags: "--stop-unsupported"}, 4, "--instances=socket",
		"--instances-socket=SOCKET")
	rows(t, e, map[string]func(*testing.T, *ending){
		"#43 a disk is attached": func(t *testing.T, e *ending) {
			name := e.take("6s")
			e.seen(name)
			pod := e.pod(name, "db", stuck, grace(3600), e.withDisk(name))
			e.fault(machines.Fault{Node: name, Kind: machines.DetachFails})
			e.delete(name)
			end := e.node(name).DeletionTimestamp.Add(6 * time.Second)
			e.awaitNodeEvent(name, "DisksAttached")
			if time.Now().Before(end) {
				t.Error("before E")
			}
			e.unmarked(name)
			e.expectNever(machines.Event{Node: name, Event: machines.PowerOff})
			e.Until("the report says how long", func() bool { return e.report(e.node(name).UID).OverdueSeconds > 0 })
			e.fault(machines.Fault{Node: name})
			e.awaitGone(name)
			if e.getPod(pod.Name) != nil {
				t.Error("the pod is left")
			}
		},
		"#43 nothing is attached": func(t *testing.T, e *ending) {
			name := e.take("6s")
			e.seen(name)
			e.pod(name, "stuck", stuck, grace(3600))
			i := e.Instance(name)
			e.fault(machines.Fault{Node: name, Kind: machines.Partition})
			e.delete(name)
			e.awaitGone(name)
			if state, err := e.Instances().Get(e.Ctx, i); err != nil || state != instances.Gone {
				t.Errorf("the machine is %s, %v", state, err)
			}
		},
	})
}

// TestDetachNotStarted ends a node in a cluster whose attach-detach controller does not work.
func TestDetachNotStarted(t *testing.T) {
	e := startEndingWith(t, harness.Setup{LoopFlags: "--controllers=*,-persistentvolume-attach-detach-controller"}, 2,
		"--instances=socket", "--instances-socket=SOCKET")
	name := e.take("6s")
	e.seen(name)
	e.CreateDisk(name)
	disk := e.disk(name)
	attached := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-" + name},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: machines.DriverName, NodeName: name,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &disk}}}
	_, err := e.Client.StorageV1().VolumeAttachments().Create(e.Ctx, attached, metav1.CreateOptions{})
	e.Must(err, "create attachment")
	e.AwaitEvent(machines.Event{Volume: disk, Event: machines.Attached})
	e.delete(name)
	e.power(name)
	e.awaitNodeEvent(name, "DetachNotStarted") // #45
	if ours, _ := termination.OutOfService(e.node(name)); !ours {
		t.Error("the node is not out of service")
	}
	e.Must(e.Client.StorageV1().VolumeAttachments().Delete(e.Ctx, attached.Name, metav1.DeleteOptions{}),
		"delete attachment")
	e.awaitGone(name)
}
