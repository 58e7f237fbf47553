// Package printertest pastes printed next steps into a shell.
package printertest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/printer"
	"github.com/exeunt-io/exeunt/test/paste"
)

// ExpectSafePaste pastes a next step as it is printed at the widths of terminals.
func ExpectSafePaste(t testing.TB, next string) {
	t.Helper()
	var pages []paste.Page
	for _, format := range []printer.Format{printer.Text, printer.Wide} {
		for _, width := range []int{60, 80, 200} {
			pages = append(pages, paste.Page{Where: fmt.Sprintf("-o %q at width %d", format, width),
				Lines: printed(t, next, format, width)})
		}
	}
	paste.ExpectSafe(t, next, pages...)
}

// printed returns the lines of the next step as they are printed, without the tree before them.
func printed(t testing.TB, next string, format printer.Format, width int) []string {
	t.Helper()
	leaf := blocker.Blocker{Object: blocker.Object{Kind: "PersistentVolume", Name: "pv"}, Next: next}
	root := blocker.Blocker{Object: blocker.Object{Kind: "Namespace", Name: "shop"},
		Blockers: []blocker.Blocker{{Blockers: []blocker.Blocker{leaf}}}}
	var out bytes.Buffer
	if err := (printer.Printer{Out: &out, Format: format, Columns: width}).
		Report(blocker.Report{Blockers: []blocker.Blocker{root}}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	before, text, found := strings.Cut(out.String(), "next: ")
	if !found {
		t.Fatalf("no next step in %q", out.String())
	}
	indent := len([]rune(before[strings.LastIndex(before, "\n")+1:])) + len("next: ")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines[1:] {
		lines[i+1] = string([]rune(line)[indent:])
	}
	return lines
}
