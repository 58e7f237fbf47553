package report

import (
	"fmt"
	"strings"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
)

// The markers of what this package writes.
const (
	beginMarker = "<!-- Written by make bench: begin. Changes by hand are lost. -->"
	endMarker   = "<!-- Written by make bench: end. -->"
)

// emptyPage is the page before the first run.
const emptyPage = `# Performance

` + "`make bench`" + ` measures our programs, upstream's and the ceiling by turns in one run, in about an hour; ` + "`make bench-full`" + ` also in
clusters of up to 200,000 pairs of volume and claim, in many hours. Nothing else may run on the machine.
` + "`make bench ONLY=storm-1000 ROUNDS=5`" + ` measures less. A scenario is one entry of the table in ` + "`test/bench/plan/scenarios.go`" + `.

` + beginMarker + "\n" + endMarker + "\n"

// Update replaces what stands between the markers of a page. An empty page gets them.
func Update(page, measured string) (string, error) {
	if page == "" {
		page = emptyPage
	}
	before, rest, begins := strings.Cut(page, beginMarker)
	_, after, ends := strings.Cut(rest, endMarker)
	if !begins || !ends {
		return "", fmt.Errorf("update page: the markers are missing: %s and %s", beginMarker, endMarker)
	}
	return before + beginMarker + "\n\n" + strings.TrimSpace(measured) + "\n\n" + endMarker + after, nil
}

const explanation = `All processes share the processor of one machine.

- **ours**: pv-controller and provisioner. **upstream**: the three loops of kube-controller-manager and csi-provisioner. **ceiling**:
  the writes that no program can spare and the reads before DeleteVolume, made by the load generator, beside idle watchers.
- The sides take turns in one control plane, and each round begins with another side. Values are medians of the rounds; only
  ratios of one run count. Each scenario was measured in one run.
- A phase ends when nobody has written for 2.5 s: costs include late events. The rate is that until the last volume.
- Costs are per volume. CPU time is that of the API server, etcd and the programs, not of the driver and the load generator.
- Garbage collection: **ours** is garbage-collector, **upstream** is garbage-collector-controller of kube-controller-manager, without
  client limits but in garbage-defaults. **ceiling**: deletions under UID and resourceVersion, 20 at once, and a patch of each owner
  that is deleted in the foreground, beside an idle watcher. Dependents are ConfigMaps; costs are per dependent, or per owner.
- Requests are those that the API server counted, without those of the load generator and without watches.

`

// Measured returns the text about a result. Plots are files in the directory.
func Measured(result measure.Result, directory string) string {
	var text strings.Builder
	text.WriteString(explanation)
	text.WriteString(runs(result))
	if aims := aimTable(result); len(aims.rows) > 0 {
		fmt.Fprintf(&text, "## Aims\n\n%s", aims)
	}
	for _, topic := range plan.Topics() {
		scenarios := ofTopic(result, topic)
		if len(scenarios) == 0 {
			continue
		}
		fmt.Fprintf(&text, "## %s\n\n", topic)
		fmt.Fprintf(&text, "%s%s", overview(result, scenarios), costs(result, scenarios))
		if memory := memoryOf(result, scenarios); len(memory.rows) > 0 {
			text.WriteString(memory.String())
		}
		for _, p := range plotsOf(topic) {
			if plot, drawn := p.draw(result); drawn {
				fmt.Fprintf(&text, "![%s](%s/%s)\n\n", plot.Title, directory, p.file)
			}
		}
	}
	text.WriteString("## Details\n\n")
	for _, scenario := range result.Scenarios() {
		text.WriteString(details(result, scenario))
	}
	return text.String()
}

// runs says when and where each scenario was measured.
func runs(result measure.Result) string {
	t := &table{head: []string{"run", "machine", "version", "scenarios"}}
	for _, run := range result.Runs() {
		var names []string
		for _, s := range result.In(run).Scenarios() {
			names = append(names, s.Name)
		}
		t.rows = append(t.rows, []string{run.Began, run.Machine, run.Version, strings.Join(names, ", ")})
	}
	return t.String()
}

// ofTopic returns the measured scenarios of a topic.
func ofTopic(result measure.Result, topic string) []plan.Scenario {
	var scenarios []plan.Scenario
	for _, s := range result.Scenarios() {
		if s.Topic == topic {
			scenarios = append(scenarios, s)
		}
	}
	return scenarios
}

// Plots returns the files of all plots of a result by name.
func Plots(result measure.Result) map[string]string {
	files := map[string]string{}
	for _, topic := range plan.Topics() {
		for _, p := range plotsOf(topic) {
			if plot, drawn := p.draw(result); drawn {
				files[p.file] = plot.SVG()
			}
		}
	}
	return files
}
