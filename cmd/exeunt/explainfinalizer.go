package main

import (
	"fmt"
	"strings"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/printer"
)

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
