package main

import (
	"bytes"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
)

// stages are what a runner tells of a small teardown.
var stages = []runner.Progress{
	{},
	{Phase: teardown.Preparing, Message: "the plan is saved", Leading: true},
	{Phase: teardown.Preparing, Message: "the plan is saved", Leading: true},
	{Phase: teardown.TearingDown, Message: "objects\x1b[2J are deleted", Leading: true,
		Left: map[string]int{"Volume": 2, "LoadBalancer": 1}},
	{Phase: teardown.TearingDown, Message: "awaited", Leading: true, Left: map[string]int{"Volume": 1}},
	{Phase: teardown.Complete, Message: "everything to delete is gone"},
}

func TestProgressIsLinePerChange(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out)
	for _, stage := range stages {
		p.show(stage)
	}
	p.end()
	const want = "Preparing: the plan is saved\n" +
		"TearingDown: 2 volumes, 1 load balancer left: objects [2J are deleted\n" +
		"TearingDown: 1 volume left: awaited\n" +
		"Complete: everything to delete is gone: another runner does it, this one follows\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestProgressIsRedrawnOnTerminal(t *testing.T) {
	var out bytes.Buffer
	p := &progress{out: &out, columns: 40}
	for _, stage := range stages {
		p.show(stage)
	}
	p.end()
	const again = "\r\x1b[K"
	const want = again + "Preparing: the plan is saved\n" +
		"TearingDown: 2 volumes, 1 load balancer" + again + "TearingDown: 1 volume left: awaited\n" +
		"Complete: everything to delete is gone:\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// A status names 50 objects at most.
func TestProgressOfFollowerCountsWhatIsNotNamed(t *testing.T) {
	got := textOf(runner.Progress{Phase: teardown.TearingDown, Left: map[string]int{"Volume": 50}, More: 4950})
	if want := "TearingDown: 50 volumes, 4950 more left: another runner does it, this one follows"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
