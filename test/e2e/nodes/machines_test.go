package nodes

import (
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

func TestMachinesRunPodsAndDisks(t *testing.T) {
	c := startCloud(t, 3)
	c.deployment("web", 3, `cloudmock.exeunt.io/exit-after: 1s`)
	used := map[string]bool{}
	for _, pod := range c.awaitReady("web", 3) {
		used[pod.Spec.NodeName] = true
	}
	if len(used) != 3 {
		t.Errorf("the pods of the Deployment run on %v, want three nodes", used)
	}

	c.CreateDisk("disk-0")
	c.statefulSet("db", 1)
	db := c.awaitReady("db", 1)[0]
	pod, disk := machines.Event{UID: db.UID}, machines.Event{Volume: "disk-0"}
	if got, want := c.Story(disk), "attached mounted"; got != want {
		t.Errorf("disk: %s, want %s", got, want)
	}

	c.scale("db", 0)
	c.AwaitEvent(machines.Event{Volume: "disk-0", Event: machines.Detached})
	if got, want := c.Story(disk), "attached mounted unmounted detached"; got != want {
		t.Errorf("disk: %s, want %s", got, want)
	}
	if got, want := c.Story(pod), "mounted started sigterm exited unmounted"; got != want {
		t.Errorf("pod with the disk: %s, want %s", got, want)
	}
}

func TestGraceIsCountedFromDeletion(t *testing.T) {
	c := startCloud(t, 1)
	c.deployment("patient", 1, `cloudmock.exeunt.io/exit-after: 2s`)
	c.deployment("deaf", 1, `cloudmock.exeunt.io/ignore-sigterm: "true"`)
	for app, grace := range map[string]int64{"patient": 30, "deaf": 3} {
		pod := c.awaitReady(app, 1)[0]
		c.deleteWithGrace(pod.Name, grace)
		term := c.AwaitEvent(machines.Event{UID: pod.UID, Event: machines.Sigterm})
		exit := c.AwaitEvent(machines.Event{UID: pod.UID, Event: machines.Exited})
		want := min(2*time.Second, time.Duration(grace)*time.Second)
		if app == "deaf" {
			want = 3 * time.Second
		}
		if took := harness.Elapsed(term, exit); took < want || took > want+2*time.Second {
			t.Errorf("%s exited %s after SIGTERM, want %s", app, took, want)
		}
		if killed := len(c.Events(machines.Event{UID: pod.UID, Event: machines.Sigkill})); (killed == 1) != (app == "deaf") {
			t.Errorf("%s got SIGKILL %d times", app, killed)
		}
	}
}

func TestStoppedMachineEndsPodsWithoutSignal(t *testing.T) {
	c := startCloud(t, 2)
	c.deployment("web", 2)
	pod := c.awaitReady("web", 2)[0]
	node := pod.Spec.NodeName
	state, err := c.Instances().Stop(c.Ctx, c.Instance(node))
	if err != nil || state != instances.Off {
		t.Fatalf("stop answers %q, %v; want Off", state, err)
	}
	if got, want := c.Story(machines.Event{UID: pod.UID}), "started"; got != want {
		t.Errorf("pod: %s, want %s", got, want)
	}
	c.AwaitEvent(machines.Event{Node: node, Event: machines.PowerOff})
	first := c.lease(node)
	c.Until("the node is not ready", func() bool { return !c.isReady(node) })
	if last := c.lease(node); last != first {
		t.Errorf("the Lease of a machine without power was renewed at %s, last before at %s", last, first)
	}
	if state, err = c.Instances().Delete(c.Ctx, c.Instance(node)); err != nil || state != instances.Gone {
		t.Errorf("delete answers %q, %v; want Gone", state, err)
	}
}
