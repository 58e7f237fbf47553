package nodes

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
)

// TestUpgradeAndUninstallAmidTerminations replaces the program while 20 nodes end, asks for the rollback that the chart
// asks for before an uninstall, and uninstalls once all have ended.
func TestUpgradeAndUninstallAmidTerminations(t *testing.T) {
	t.Parallel()
	const period = 40 * time.Second
	// The Lease is that of an installation: a busy machine must not end the last leader, which nobody begins again.
	e := startEnding(t, 22, "--leader-elect=true", "--instances=socket", "--instances-socket=SOCKET")
	idle := e.take("15m")
	e.seen(idle)
	uids, ends := map[string]types.UID{}, map[string]time.Time{}
	for range 20 {
		name := e.take(period.String())
		e.seen(name)
		e.pod(name, "stuck", stuck, grace(3600))
		uids[name] = e.node(name).UID
	}
	for name := range uids {
		e.fault(machines.Fault{Node: name, Kind: machines.Partition})
		e.delete(name)
		ends[name] = e.node(name).DeletionTimestamp.Add(period)
	}
	old := e.terminator
	e.begin() // as a Deployment: the new pod is there before the old one gets SIGTERM
	e.Must(old.Signal(syscall.SIGTERM), "stop the old program")
	e.expectRollbackWaits(uids)
	for name, uid := range uids {
		e.expectStop(name, ends[name])
		e.awaitGone(name)
		e.awaitPhase(uid, termination.PhaseEnded)
	}
	if text, code := e.exeunt("rollback", "nodes", "--confirm"); code != 0 {
		t.Errorf("rollback nodes, exit code %d: %s", code, text)
	}
	e.delete(idle)
	if e.node(idle) != nil {
		t.Error("the node is not gone at once")
	}
	e.expectNever(machines.Event{Event: machines.TwoWriters})
}

// expectRollbackWaits wants a rollback that names the terminating nodes, leaves them, and fails.
func (e *ending) expectRollbackWaits(nodes map[string]types.UID) {
	e.T.Helper()
	text, code := e.exeunt("rollback", "nodes", "--confirm", "-o", "json") // the text names 20 of the 21 nodes
	for name := range nodes {
		if !termination.Protected(e.node(name)) {
			e.T.Fatalf("the rollback released the terminating node %s", name)
		}
		if !strings.Contains(text, `"`+name+`"`) {
			e.T.Errorf("the rollback does not name the terminating node %s: %s", name, text)
		}
	}
	if code == 0 {
		e.T.Errorf("the rollback says that all is done: %s", text)
	}
}
