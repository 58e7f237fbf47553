package nodes

import (
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/faultproxy"
)

// killer kills the program right after planned requests, whose answers are lost, and begins it again.
type killer struct {
	*plan
	kills  chan struct{}
	killed int
}

// choose has the answer to a planned request lost.
func (k *killer) choose(of faultproxy.Fault) faultproxy.Kind {
	kind := k.plan.choose(of)
	if kind != "" {
		k.kills <- struct{}{}
	}
	return kind
}

// kill kills the program if a planned request was sent.
func (k *killer) kill(e *ending) {
	e.T.Helper()
	select {
	case <-k.kills:
		k.killed++
		e.Must(e.terminator.Kill(), "kill node-terminator")
		<-e.terminator.Done()
		e.begin()
	default:
	}
}

// leastKills is fewer than a termination has writes, or reads: some of them come from another process than the planned
// one. mostWrites and mostReads are how many writes, and reads of a Node, its Lease or its report, are tested.
const leastKills, mostWrites, mostReads = 12, 24, 16

// #70 TestLeaderEndsAfterEachWrite kills the program after the n-th write of a termination, for every n. Each node ends, and
// each of its pods is in a count.
func TestLeaderEndsAfterEachWrite(t *testing.T) { endAfterEach(t, false, mostWrites, leastKills) }

// #70 TestLeaderEndsAfterEachRead kills the program after the n-th live read of a termination, for every n.
func TestLeaderEndsAfterEachRead(t *testing.T) { endAfterEach(t, true, mostReads, leastKills) }

func endAfterEach(t *testing.T, reads bool, most, least int) {
	t.Helper()
	k := &killer{plan: &plan{owners: map[string]string{}, faults: map[string]plannedFault{}, writes: map[string][]string{},
		reads: reads}, kills: make(chan struct{}, most)}
	e := startEndingBehind(t, most, faultproxy.Config{Choose: k.choose}, "--instances=socket",
		"--instances-socket=SOCKET")
	var ends []*faultedEnd
	for i := range most {
		ends = append(ends, &faultedEnd{ending: e, name: e.Nodes[i]})
	}
	all(ends, (*faultedEnd).prepare)
	for i, end := range ends {
		k.add(end)
		k.faults[end.name] = plannedFault{kind: faultproxy.CutAfter, n: i}
	}
	for _, end := range ends {
		end.fault(machines.Fault{Node: end.name, Kind: machines.Partition})
		end.start()
		k.kill(e)
	}
	for _, end := range ends {
		e.Until("the node is gone", func() bool {
			k.kill(e)
			return e.node(end.name) == nil
		})
	}
	for _, end := range ends {
		end.expectCounted()
	}
	if t.Logf("killed %d times", k.killed); k.killed < least {
		t.Errorf("the program was killed %d times", k.killed)
	}
	e.expectNever(machines.Event{Event: machines.TwoWriters})
}

// mostLate is how late a machine may be stopped while the program is killed again and again.
const mostLate = 15 * time.Second

// expectCounted waits for the end of the node, and wants each of its pods in a count of the report.
func (f *faultedEnd) expectCounted() {
	f.T.Helper()
	f.AwaitEvent(machines.Event{Volume: f.disk(f.name), Event: machines.Detached})
	report := f.awaitPhase(f.uid, termination.PhaseEnded)
	c := report.Counts
	sum := c.Evicted + c.Deleted + c.CutShort + c.Removed + c.Others + c.Finished + c.Unknown + c.Left
	if sum < len(f.pods) {
		f.T.Errorf("%s: %d of %d pods are counted: %+v", f.name, sum, len(f.pods), c)
	}
	for _, one := range f.pods {
		if f.getPod(one.Name) != nil {
			f.T.Errorf("%s: pod %s is left", f.name, one.Name)
		}
	}
	if late := f.power(f.name).Time.Sub(*report.Deadline); late > mostLate {
		f.T.Errorf("%s: the machine was stopped %v after E", f.name, late)
	}
}
