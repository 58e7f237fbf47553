package main

import (
	"fmt"
	"strings"

	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
)

const explanation = `Values are medians of the rounds. Costs are per volume unless said otherwise. CPU time is that of the API server, etcd and the
programs. Requests are those that the API server counted, without watches and without those of the users. The ceiling is the fewest
requests that could do it, sent by the load generator.

`

// Tables returns the tables of a result as Markdown.
func Tables(result measure.Result) string {
	var text strings.Builder
	text.WriteString(explanation + runs(result).String())
	if aims := aimTable(result); len(aims.rows) > 0 {
		fmt.Fprintf(&text, "## Aims\n\n%s", aims)
	}
	for _, topic := range plan.Topics() {
		scenarios := ofTopic(result, topic)
		if len(scenarios) == 0 {
			continue
		}
		fmt.Fprintf(&text, "## %s\n\n", topic)
		for _, t := range []*table{overview(result, scenarios), costs(result, scenarios), memoryOf(result, scenarios)} {
			if len(t.rows) > 0 {
				text.WriteString(t.String())
			}
		}
	}
	return text.String()
}

// runs returns the table of when and where each scenario was measured.
func runs(result measure.Result) *table {
	t := &table{head: []string{"run", "machine", "version", "scenarios"}}
	for _, run := range result.Runs() {
		var names []string
		for _, s := range result.In(run).Scenarios() {
			names = append(names, s.Name)
		}
		t.rows = append(t.rows, []string{run.Began, run.Machine, run.Version, strings.Join(names, ", ")})
	}
	return t
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

// table is a Markdown table whose first column is text.
type table struct {
	head []string
	rows [][]string
}

// negligible is the text of a small value.
const negligible = "< 0.01"

// add appends a row, unless all its values are empty or negligible.
func (t *table) add(cells ...string) {
	for _, cell := range cells[1:] {
		if cell != "" && cell != negligible {
			t.rows = append(t.rows, cells)
			return
		}
	}
}

// String returns the table and an empty line.
func (t *table) String() string {
	var text strings.Builder
	line := func(cells []string) { fmt.Fprintf(&text, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	text.WriteString("|---|" + strings.Repeat("---:|", len(t.head)-1) + "\n")
	for _, row := range t.rows {
		line(row)
	}
	return text.String() + "\n"
}

// number returns a value with about three digits, "" for 0.
func number(value float64) string {
	switch {
	case value == 0:
		return ""
	case value < 0.005:
		return negligible
	case value < 10:
		return fmt.Sprintf("%.2f", value)
	case value < 100:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.0f", value)
}

// ratio returns a divided by b, "" if either is 0: it was not measured.
func ratio(a, b float64) string {
	if a == 0 || b == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", a/b)
}
