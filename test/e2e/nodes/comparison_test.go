package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/cloudmock/machines"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/nodeend"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

const (
	// cellPeriod is how long the end of a node may take: kubectl drains for so long, and ours has it as the label.
	cellPeriod = 80 * time.Second
	// cellWatch is how long a node is watched: the drain, a minute until pods without a Node are removed, and the 6
	// minutes after which the attach-detach controller detaches by force.
	cellWatch = cellPeriod + 8*time.Minute
	// comparisonLimit bounds the test: the cell of the killed leader comes after the others of ours.
	comparisonLimit = cellWatch + 4*time.Minute
	// killAfter is when the leader, or kubectl, is killed.
	killAfter = 3 * time.Second
)

// way is a column of the table: how a node is ended.
type way string

const (
	byDrain     way = "kubectl drain, then delete"
	byDelete    way = "kubectl delete node"
	byKarpenter way = "Karpenter"
	byOurs      way = "node-terminator"
)

var ways = []way{byDrain, byDelete, byKarpenter, byOurs}

// situation is a row of the table.
type situation struct {
	name string
	// annotations of the pod, each a line of YAML, and its grace period.
	annotations []string
	grace       int64
	// budget: a full budget has the pod.
	budget bool
	// disk: the pod is that of a StatefulSet with a disk. driver: the CSI driver's pod is one of a DaemonSet.
	disk, driver bool
	// before is what happens right before the node is ended.
	before func(*cell, context.Context) error
	// killed: the leader is killed while the node ends, and kubectl.
	killed bool
	// invalid: another node has a period that no Go duration holds. It ends all that Karpenter does.
	invalid bool
}

// situations are the rows.
var situations = []situation{
	{name: "budget that is full", annotations: []string{exitsAfter("3s")}, grace: 5, budget: true},
	{name: "do-not-disrupt", annotations: []string{exitsAfter("3s"), nodeend.DoNotDisrupt + `: "true"`}, grace: 5},
	{name: "Terminating, an hour of grace", annotations: []string{ignoresSigterm}, grace: 30, before: (*cell).deletePod},
	{name: "grace beyond T, exits after 40 s", annotations: []string{exitsAfter("40s")}, grace: 600},
	{name: "grace of 9223372037 s, never exits", annotations: []string{ignoresSigterm}, grace: 9223372037},
	{name: "dead kubelet with a disk", annotations: []string{exitsAfter("3s")}, grace: 5, disk: true,
		before: (*cell).killKubelet},
	{name: "disk, CSI driver of a DaemonSet", annotations: []string{exitsAfter("8s")}, grace: 20, disk: true,
		driver: true},
	{name: "the same with a full budget", annotations: []string{exitsAfter("8s")}, grace: 20, disk: true,
		driver: true, budget: true},
	{name: "leader or kubectl killed", annotations: []string{exitsAfter("3s")}, grace: 5, budget: true, killed: true},
	{name: "full budget, 9999999h on another node", annotations: []string{exitsAfter("3s")}, grace: 5, budget: true,
		invalid: true, before: (*cell).extendOther},
	{name: "full budget, unparsable deadline", annotations: []string{exitsAfter("3s")}, grace: 5, budget: true,
		before: (*cell).spoilDeadline},
}

const ignoresSigterm = `cloudmock.exeunt.io/ignore-sigterm: "true"`

func exitsAfter(after string) string { return "cloudmock.exeunt.io/exit-after: " + after }

// comparison is the cloud of cells.
type comparison struct {
	*ending
	karpenter *karpenter
	cells     []*cell
	// spare is the node for pods of nodes that ended.
	spare string
	mu    sync.Mutex
	dead  []machines.Fault
}

// TestComparison ends nodes by kubectl, by Karpenter and by node-terminator, and prints a table. What ends Karpenter is
// in a cloud of its own.
func TestComparison(t *testing.T) {
	c, apart := startComparison(t, len(situations)*len(ways)-2), startComparison(t, 2)
	var cells []*cell
	for _, s := range situations {
		for _, w := range ways {
			of := c
			if w == byKarpenter && (s.killed || s.invalid) {
				of = apart
			}
			cells = append(cells, of.newCell(s, w))
		}
	}
	var all errgroup.Group
	all.Go(c.runAll)
	all.Go(apart.runInTurn)
	c.Must(all.Wait(), "run all cells")
	printComparison(t, cells)
	c.expectApart()
	failures := map[way]int{}
	for _, one := range cells {
		wrong := one.wrong()
		failures[one.way] += len(wrong)
		if one.way == byOurs && len(wrong) > 0 {
			t.Errorf("%s: %s", one.situation.name, strings.Join(wrong, ", "))
		}
	}
	for _, w := range ways[:len(ways)-1] {
		if failures[w] == 0 {
			t.Errorf("nothing is wrong with %s: what does the table compare?", w)
		}
	}
}

// startComparison starts a cloud for this number of cells, node-terminator and Karpenter.
func startComparison(t *testing.T, cells int) *comparison {
	t.Helper()
	nodes := cells + 1
	mock := harness.OwnCloud(t, harness.Setup{NoPrograms: true, Machines: nodes}, nodes, harness.Within(comparisonLimit))
	e := &ending{cloud: cloud{mock}, taken: &atomic.Int32{}, faults: &faults{},
		args: []string{"--instances=socket", "--instances-socket=" + mock.Socket}}
	e.Must(sandbox.Apply(e.Ctx, e.Plane.RESTConfig(), deploy.NodeTerminator), "apply manifests")
	e.begin()
	t.Cleanup(func() { e.Must(e.terminator.Kill(), "kill node-terminator") })
	c := &comparison{ending: e, karpenter: e.startKarpenter(), spare: fmt.Sprintf("mock-%d", nodes-1)}
	c.label(c.spare, "9999999h")
	return c
}

// newCell returns a cell with a node of its own.
func (c *comparison) newCell(s situation, w way) *cell {
	number := len(c.cells)
	c.cells = append(c.cells, &cell{comparison: c, situation: s, way: w,
		name: fmt.Sprintf("cell-%d", number), node: fmt.Sprintf("mock-%d", number)})
	return c.cells[number]
}

// runInTurn runs one cell after the other.
func (c *comparison) runInTurn() error {
	for _, one := range c.cells {
		if err := one.run(c.Ctx); err != nil {
			return err
		}
	}
	return nil
}

// runAll runs all cells at once, but for that of ours whose leader is killed: it comes after the others of ours.
func (c *comparison) runAll() error {
	all, ctx := errgroup.WithContext(c.Ctx)
	ours, _ := errgroup.WithContext(c.Ctx)
	for _, one := range c.cells {
		switch {
		case one.way != byOurs:
			all.Go(func() error { return one.run(ctx) })
		case !one.killed:
			ours.Go(func() error { return one.run(ctx) })
		}
	}
	err := ours.Wait()
	for _, one := range c.cells {
		if err == nil && one.way == byOurs && one.killed {
			err = one.run(ctx)
		}
	}
	return errors.Join(err, all.Wait())
}

// expectApart expects that neither Karpenter nor node-terminator has written on a node of the other, or of kubectl.
func (c *comparison) expectApart() {
	c.T.Helper()
	writes := c.writes()
	for _, one := range c.cells {
		karpenters, ours := writes.on(one.node, one.name+"-")
		if (karpenters > 0) != (one.way == byKarpenter) || (ours > 0) != (one.way == byOurs) {
			c.T.Errorf("%s by %s: %d writes of Karpenter, %d of node-terminator", one.situation.name, one.way, karpenters, ours)
		}
	}
}

// printComparison prints the table, and writes it to the file that EXEUNT_NODES_TABLE names.
func printComparison(t *testing.T, cells []*cell) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "Nodes that end within %s: grace given / ended against budget or do-not-disrupt /\n", cellPeriod)
	b.WriteString("seconds past the deadline / seconds until the disk is attached elsewhere / two writers.\n\n| |")
	for _, w := range ways {
		fmt.Fprintf(&b, " %s |", w)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(ways)) + "\n")
	for _, s := range situations {
		fmt.Fprintf(&b, "| %s |", s.name)
		for _, c := range cells {
			if c.situation.name == s.name {
				fmt.Fprintf(&b, " %s |", c)
			}
		}
		b.WriteString("\n")
	}
	t.Log("\n" + b.String())
	if file := os.Getenv("EXEUNT_NODES_TABLE"); file != "" {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Errorf("write table: %v", err)
		}
	}
}
