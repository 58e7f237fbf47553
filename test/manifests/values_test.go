package manifests

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

var write = flag.Bool("write", false, "write the table of the chart's values instead of comparing it")

// The markers of the table in the README of the chart.
const (
	beginValues = "<!-- Written by a test, do not edit: begin -->\n"
	endValues   = "<!-- Written by a test: end -->\n"
)

// TestReadmeOfChartHasAllValues compares the table of values with values.yaml.
func TestReadmeOfChartHasAllValues(t *testing.T) {
	file := filepath.Join(deployment, "helm", "exeunt", "README.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), beginValues)
	_, after, ends := strings.Cut(rest, endValues)
	if !begins || !ends {
		t.Fatalf("%s lacks the markers of the table", file)
	}
	want := before + beginValues + valuesTable(t) + endValues + after
	if *write {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(text), want); diff != "" {
		t.Errorf("the table is out of date, run go test -run Values . -args -write in test/manifests:\n%s", diff)
	}
}

// valuesTable returns a row for each value.
func valuesTable(t *testing.T) string {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal(rawValues(t), &document); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| value | default | meaning |\n|---|---|---|\n")
	valueRows(t, &table, document.Content[0], "")
	return table.String()
}

// valueRows adds a row for each value of a map; a map of values has a row of its own if it says
// something.
func valueRows(t *testing.T, table *strings.Builder, node *yaml.Node, prefix string) {
	t.Helper()
	for i := 0; i < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		meaning := meaningOf(key.HeadComment)
		if value.Kind == yaml.MappingNode && len(value.Content) > 0 {
			if meaning != "" {
				fmt.Fprintf(table, "| `%s%s` | | %s |\n", prefix, key.Value, meaning)
			}
			valueRows(t, table, value, prefix+key.Value+".")
			continue
		}
		flow := *value
		flow.Style, flow.HeadComment, flow.FootComment = yaml.FlowStyle, "", ""
		text, err := yaml.Marshal(&flow)
		if err != nil {
			t.Fatal(err)
		}
		if meaning == "" {
			meaning = "As in Kubernetes."
		}
		fmt.Fprintf(table, "| `%s%s` | `%s` | %s |\n", prefix, key.Value, strings.Join(strings.Fields(string(text)), " "),
			meaning)
	}
}

// meaningOf returns the text of a comment. What stands before an empty line belongs to the file.
func meaningOf(comment string) string {
	if i := strings.LastIndex(comment, "\n\n"); i >= 0 {
		comment = comment[i+2:]
	}
	var words []string
	for line := range strings.Lines(comment) {
		if strings.HasPrefix(line, "#  ") {
			continue // an example
		}
		words = append(words, strings.Fields(strings.TrimLeft(line, "# "))...)
	}
	return strings.ReplaceAll(strings.Join(words, " "), "|", "\\|")
}
