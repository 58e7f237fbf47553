package stories

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/exeunt-io/exeunt/test/demo"
)

// Step is something that the administrator does.
type Step struct {
	Story   string    `json:"story"`
	Pair    demo.Pair `json:"pair"`
	Seconds float64   `json:"seconds"`
	What    string    `json:"what"`
}

// Printer shows stories. Its errors are errors of the output.
type Printer interface {
	// Begin announces a story.
	Begin(story Story) error
	// Step shows a step. An error of the output is that of the next End.
	Step(step Step)
	// End shows the result of one pair.
	End(result Result) error
	// Summarize compares all results. It is called last.
	Summarize(results []Result) error
}

// NewTextPrinter returns a printer for people.
func NewTextPrinter(out io.Writer) Printer { return &textPrinter{out: out} }

// textPrinter prints steps and a table.
type textPrinter struct {
	out io.Writer
	err error
}

// printf prints unless printing failed before.
func (p *textPrinter) printf(format string, values ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, values...)
	}
}

func (p *textPrinter) Begin(story Story) error {
	p.printf("\n%s: %s\n", story.Name, story.What)
	return p.err
}

func (p *textPrinter) Step(step Step) {
	p.printf("%7.3f  %-8s  %s\n", step.Seconds, step.Pair, step.What)
}

func (p *textPrinter) End(result Result) error {
	for _, measure := range result.all() {
		p.printf("         %-8s  → %s: %s\n", result.Pair, measure.Name, measure.Value)
	}
	if result.Unfinished != "" {
		p.printf("         %-8s  → %s\n", result.Pair, result.Unfinished)
	}
	return p.err
}

func (p *textPrinter) Summarize(results []Result) error {
	p.printf("\n")
	table := printers.GetNewTabWriter(p.out)
	sides := columns(results)
	fmt.Fprint(table, "STORY\tMEASURED")
	for _, side := range sides {
		fmt.Fprintf(table, "\t%s", strings.ToUpper(string(side)))
	}
	for _, row := range rows(results) {
		fmt.Fprintf(table, "\n%s\t%s", row.story, row.measured)
		for _, side := range sides {
			fmt.Fprintf(table, "\t%s", cmp.Or(row.values[side], "-"))
		}
	}
	fmt.Fprintln(table)
	if p.err == nil {
		p.err = table.Flush()
	}
	return p.err
}

// columns returns who or what has results, in their order.
func columns(results []Result) []demo.Pair {
	var sides []demo.Pair
	for _, result := range results {
		if !slices.Contains(sides, result.Pair) {
			sides = append(sides, result.Pair)
		}
	}
	return sides
}

// row is a line of the table.
type row struct {
	story, measured string
	values          map[demo.Pair]string
}

// rows returns the table: what is measured in each story, in the order of the results.
func rows(results []Result) []row {
	var table []row
	for _, result := range results {
		for _, measure := range result.all() {
			i := slices.IndexFunc(table, func(r row) bool { return r.story == result.Story && r.measured == measure.Name })
			if i < 0 {
				i = len(table)
				table = append(table, row{result.Story, measure.Name, map[demo.Pair]string{}})
			}
			table[i].values[result.Pair] = measure.Value
		}
	}
	return table
}

// NewJSONPrinter returns a printer for programs: one object per line for each step and
// result, and a last one with all results.
func NewJSONPrinter(out io.Writer) Printer { return &jsonPrinter{encoder: json.NewEncoder(out)} }

// jsonPrinter prints lines of JSON.
type jsonPrinter struct {
	encoder *json.Encoder
	err     error
}

// encode prints an object unless printing failed before.
func (p *jsonPrinter) encode(object any) error {
	if p.err == nil {
		p.err = p.encoder.Encode(object)
	}
	return p.err
}

func (p *jsonPrinter) Begin(Story) error { return p.err }

func (p *jsonPrinter) Step(step Step) {
	_ = p.encode(struct { // the next End returns the error
		Kind string `json:"kind"`
		Step
	}{"step", step})
}

func (p *jsonPrinter) End(result Result) error {
	return p.encode(struct {
		Kind string `json:"kind"`
		Result
	}{"result", result})
}

func (p *jsonPrinter) Summarize(results []Result) error {
	return p.encode(struct {
		Kind       string   `json:"kind"`
		AsPromised bool     `json:"asPromised"`
		Results    []Result `json:"results"`
	}{"verdict", broken(results) == nil, results})
}
