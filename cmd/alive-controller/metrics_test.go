package main

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
)

const (
	phaseHelp     = "# HELP exeunt_teardown_phase Phase of the teardown of the cluster: 1 for the phase that it has, 0 for the others.\n# TYPE exeunt_teardown_phase gauge\n"
	remainingHelp = "# HELP exeunt_teardown_remaining What is still to be deleted, by kind, while this process carries out the teardown.\n# TYPE exeunt_teardown_remaining gauge\n"
)

// phaseText is the metric of a teardown in the phase.
func phaseText(now string) string {
	text := phaseHelp
	for _, phase := range []string{"Armed", "Complete", "Preparing", "Protected", "Stopped", "TearingDown"} {
		value := "0"
		if phase == now {
			value = "1"
		}
		text += `exeunt_teardown_phase{phase="` + phase + `"} ` + value + "\n"
	}
	return text
}

func TestMetricsShowPhaseAndWhatIsLeft(t *testing.T) {
	p := &progress{}
	registry := prometheus.NewPedanticRegistry()
	if err := p.register(registry); err != nil {
		t.Fatal(err)
	}
	left := map[string]int{"Volume": 3, "LoadBalancer": 1}
	for _, step := range []struct {
		next runner.Progress
		want string
	}{
		{runner.Progress{}, ""},
		{runner.Progress{Phase: teardown.Protected}, phaseText("Protected")},
		{runner.Progress{Phase: teardown.Protected}, phaseText("Protected")},
		{runner.Progress{Phase: teardown.Armed, Left: left}, phaseText("Armed")},
		{runner.Progress{Phase: teardown.TearingDown, Leading: true, Left: left}, phaseText("TearingDown") + remainingHelp + strings.Join([]string{
			`exeunt_teardown_remaining{kind="Gateway"} 0`, `exeunt_teardown_remaining{kind="Ingress"} 0`,
			`exeunt_teardown_remaining{kind="LoadBalancer"} 1`, `exeunt_teardown_remaining{kind="Participant"} 0`,
			`exeunt_teardown_remaining{kind="Snapshot"} 0`, `exeunt_teardown_remaining{kind="Volume"} 3`}, "\n") + "\n"},
		{runner.Progress{Phase: teardown.Stopped}, phaseText("Stopped")},
		{runner.Progress{Phase: teardown.Protected}, phaseText("Protected")},
	} {
		p.follow(step.next)
		if err := testutil.GatherAndCompare(registry, strings.NewReader(step.want)); err != nil {
			t.Errorf("%+v: %v", step.next, err)
		}
	}
}
