package nodes

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
)

func TestRowsByHand(t *testing.T) {
	e := startEnding(t, 4, "--instances=manual")
	rows(t, e, map[string]func(*testing.T, *ending){
		"#56 drained":                     drainedByHand,
		"#56 power off, then the taint":   poweredOffByHand,
		"#56 the taint while it runs yet": taintTooEarly,
	})
	if twice := e.Events(machines.Event{Event: machines.TwoWriters}); len(twice) > 0 {
		t.Errorf("two writers: %+v", twice)
	}
}

func drainedByHand(_ *testing.T, e *ending) {
	name := e.take("15m")
	e.pod(name, "web")
	e.delete(name)
	e.awaitGone(name)
	e.awaitNodeEvent(name, "MachineRuns")
	e.expectNever(machines.Event{Node: name, Event: machines.PowerOff})
}

// mark sets the taint as an administrator does.
func (e *ending) mark(name string) {
	e.T.Helper()
	node := e.node(name)
	node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: v1.TaintNodeOutOfService, Value: "nodeshutdown",
		Effect: v1.TaintEffectNoExecute})
	_, err := e.Client.CoreV1().Nodes().Update(e.Ctx, node, updateOptions)
	e.Must(err, "set the taint")
}

func poweredOffByHand(t *testing.T, e *ending) {
	name := e.take("6s")
	pod := e.pod(name, "db", stuck, grace(3600), e.withDisk(name))
	e.fault(machines.Fault{Node: name, Kind: machines.Partition})
	e.delete(name)
	message := e.awaitNodeEvent(name, "AwaitingPowerOff")
	if !strings.Contains(message, "power off") || !strings.Contains(message, "kubectl taint node "+name) {
		t.Errorf("event %q", message)
	}
	e.unmarked(name)
	if e.getPod(pod.Name) == nil {
		t.Error("the pod was removed while its machine runs")
	}
	e.fault(machines.Fault{Node: name, Kind: machines.PoweredOff})
	e.power(name)
	e.mark(name)
	e.AwaitEvent(machines.Event{Volume: e.disk(name), Event: machines.Detached})
	e.awaitGone(name)
	if e.getPod(pod.Name) != nil {
		t.Error("the pod is left")
	}
}

func taintTooEarly(t *testing.T, e *ending) {
	name := e.take("6s")
	e.pod(name, "db", stuck, grace(3600), e.withDisk(name))
	e.fault(machines.Fault{Node: name, Kind: machines.DetachFails})
	e.delete(name)
	e.awaitNodeEvent(name, "AwaitingPowerOff")
	e.mark(name)
	end := time.Now().Add(5 * time.Second)
	e.Until("some renewals have passed", func() bool { return time.Now().After(end) })
	if e.node(name) == nil {
		t.Fatal("the node was released while its machine runs")
	}
	e.fault(machines.Fault{Node: name, Kind: machines.DetachFails}, machines.Fault{Node: name, Kind: machines.PoweredOff})
	e.power(name)
	e.patch(name, `{"spec":{"taints":null}}`)
	e.Until("the first action is restored", func() bool { return len(e.node(name).Spec.Taints) > 0 })
	e.mark(name)
	e.awaitGone(name)
}
