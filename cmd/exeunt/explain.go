package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/printer"
)

// explainedReason is the JSON of a reason.
type explainedReason struct {
	Reason  string `json:"reason"`
	Meaning string `json:"meaning"`
	Look    string `json:"look"`
	Force   string `json:"force"`
}

// newExplainCommand returns "exeunt explain". program is how the user calls the command.
func newExplainCommand(streams genericiooptions.IOStreams, program string) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "explain [REASON | FINALIZER]",
		Short: "Say what a reason of why means or who removes a finalizer, and what force would cost",
		Long: "explain says what a reason of \"exeunt why\" means, where to look, and what it costs to end the\n" +
			"wait by force. Of a finalizer it says who removes it and when, and how to see that this\n" +
			"controller lives. Without an argument it lists all reasons. It asks no cluster.",
		Example: fmt.Sprintf("  %[1]s explain DriverRefuses\n  %[1]s explain kubernetes.io/pv-protection\n  %[1]s explain",
			program),
		RunE: func(command *cobra.Command, words []string) error {
			format, err := printer.ParseFormat(output)
			if err != nil || format == printer.Wide || format == printer.Name {
				return fmt.Errorf("--output must be json, yaml or be left out, not %q", output)
			}
			if len(words) > 1 {
				return fmt.Errorf("%s takes one reason or finalizer, not %q", command.CommandPath(), words)
			}
			return explain(printer.Printer{Out: streams.Out, Format: format}, words)
		},
		ValidArgsFunction: completeReasons,
	}
	command.Flags().StringVarP(&output, "output", "o", "", "json or yaml; empty prints text")
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]cobra.Completion{"json", "yaml"},
		cobra.ShellCompDirectiveNoFileComp))
	return command
}

// explain prints one reason, one finalizer, or all reasons.
func explain(out printer.Printer, words []string) error {
	if len(words) == 0 {
		return explainAll(out)
	}
	if reason, found := findReason(words[0]); found {
		return explainReason(out, explained(reason))
	}
	if rows := families.Named(words[0]); len(rows) > 0 {
		return explainFinalizer(out, rows)
	}
	return unknown(words[0])
}

func explainReason(out printer.Printer, reason explainedReason) error {
	if out.Format != printer.Text {
		return out.Value(reason)
	}
	columns := terminal.WidthOf(out.Out)
	return writeLines(out.Out,
		reason.Reason, "",
		paragraph(columns, "Meaning:  ", reason.Meaning),
		paragraph(columns, "Look at:  ", reason.Look),
		paragraph(columns, "By force: ", reason.Force))
}

func explainAll(out printer.Printer) error {
	var rows []explainedReason
	width := 0
	for _, reason := range blocker.Reasons() {
		rows = append(rows, explained(reason))
		width = max(width, len(reason.String()))
	}
	if out.Format != printer.Text {
		return out.Value(map[string][]explainedReason{"items": rows})
	}
	columns := terminal.WidthOf(out.Out)
	lines := []string{fmt.Sprintf("%-*s  %s", width, "REASON", "MEANING")}
	for _, row := range rows {
		lines = append(lines, paragraph(columns, fmt.Sprintf("%-*s  ", width, row.Reason), row.Meaning))
	}
	return writeLines(out.Out, lines...)
}

// explained returns the row of the table of reasons.
func explained(reason blocker.Reason) explainedReason {
	row := reason.Describe()
	return explainedReason{row.Name, row.Meaning, row.Look, row.Force}
}

// findReason returns the reason with the name, regardless of case.
func findReason(name string) (reason blocker.Reason, found bool) {
	for _, reason := range blocker.Reasons() {
		if strings.EqualFold(reason.String(), name) {
			return reason, true
		}
	}
	return 0, false
}

// unknown returns the error of a name that is neither a reason nor a finalizer in the table.
func unknown(name string) error {
	if strings.ContainsAny(name, "/.") { // names of finalizers have either, names of reasons have none
		return fmt.Errorf("the finalizer %q is not known; exeunt why KIND/NAME names the field manager that set it", name)
	}
	var names []string
	for _, reason := range blocker.Reasons() {
		names = append(names, reason.String())
	}
	if meant := terminal.Closest(name, names); meant != "" {
		return fmt.Errorf("there is no reason %q, did you mean %s?", name, meant)
	}
	return fmt.Errorf("there is no reason %q, exeunt explain lists all", name)
}

// paragraph returns the text after the name, in lines that fit the width.
func paragraph(columns int, name, text string) string {
	return name + strings.Join(terminal.Wrap(text, columns-len(name)), "\n"+strings.Repeat(" ", len(name)))
}

func writeLines(out io.Writer, lines ...string) error {
	_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
	return err
}

// explainedFinalizer is the JSON of one project that sets a finalizer.
type explainedFinalizer struct {
	Finalizers []string `json:"finalizers"`
	Project    string   `json:"project"`
	Kinds      []string `json:"kinds"`
	RemovedBy  []string `json:"removedBy"`
	When       string   `json:"when"`
	Alive      string   `json:"alive"`
	Force      string   `json:"force"`
	Source     string   `json:"source"`
}

// explainFinalizer prints who removes the finalizer, for each project that sets it.
func explainFinalizer(out printer.Printer, rows []families.Family) error {
	var found []explainedFinalizer
	for _, row := range rows {
		one := explainedFinalizer{
			Finalizers: row.Finalizers, Project: row.Name, Kinds: append([]string{}, row.Kinds...),
			When: row.When, Alive: row.Alive, Force: row.Force, Source: row.Source,
		}
		for _, controller := range row.Controllers() {
			one.RemovedBy = append(one.RemovedBy, controller.Name)
		}
		found = append(found, one)
	}
	if out.Format != printer.Text {
		return out.Value(map[string][]explainedFinalizer{"items": found})
	}
	columns := terminal.WidthOf(out.Out)
	var lines []string
	for i, one := range found {
		if i > 0 {
			lines = append(lines, "")
		}
		kinds := "any kind"
		if len(one.Kinds) > 0 {
			kinds = strings.Join(one.Kinds, ", ")
		}
		lines = append(lines,
			one.Project, "",
			paragraph(columns, "Set:      ", strings.Join(one.Finalizers, ", ")),
			paragraph(columns, "On:       ", kinds),
			paragraph(columns, "Removed:  ", fmt.Sprintf("by %s when %s", strings.Join(one.RemovedBy, " or "), one.When)),
			paragraph(columns, "Alive:    ", one.Alive),
			paragraph(columns, "By force: ", one.Force),
			paragraph(columns, "Source:   ", one.Source))
	}
	return writeLines(out.Out, lines...)
}
