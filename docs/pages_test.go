package docs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

const reasonsHead = `# Reasons

Why a deletion waits. ` + "`exeunt why`" + ` prints one of these reasons for each blocker, the event ` +
	"`DeletionWaiting`" + ` names it, and the
metric ` + "`exeunt_deletion_waiting`" + ` has it as the label ` + "`blocker`" + `. ` + "`exeunt explain REASON`" +
	` prints the same text.

The reason says what the deletion waits for. The verdict beside it says whether it will come: ` + "`waiting`" +
	` will, ` + "`stuck`" + ` will not
without help, and ` + "`unknown`" + ` means that nothing shows which.

Generated from the code by ` + "`go generate ./docs`" + `.
`

// reasonsPage returns docs/reasons.md.
func reasonsPage(*testing.T) string {
	var page strings.Builder
	page.WriteString(reasonsHead)
	page.WriteString("\n| reason | what the deletion waits for | where to look | what force costs |\n|---|---|---|---|\n")
	cell := strings.NewReplacer("|", `\|`).Replace
	for _, reason := range blocker.Reasons() {
		row := reason.Describe()
		fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", row.Name, cell(row.Meaning), cell(row.Look), cell(row.Force))
	}
	return page.String()
}

const finalizersHead = `# Finalizers

Which controller removes which finalizer, when, how to see that the controller lives, and what is lost if the finalizer is
removed by hand, is printed by ` + "`exeunt explain FINALIZER`" + `. ` + "`exeunt why`" +
	` knows these finalizers; of any other it says which
field manager set it and which workloads may work with it. ` + "`*`" + ` stands for any text.

A finalizer is removed by hand only as the last resort: when its controller is proven gone, and what the controller would have
cleaned up is cleaned up or is to stay.

Generated from the code by ` + "`go generate ./docs`" + `.
`

// finalizersPage returns docs/finalizers.md.
func finalizersPage(*testing.T) string {
	var page strings.Builder
	page.WriteString(finalizersHead)
	page.WriteString("\n| finalizer | on | set by |\n|---|---|---|\n")
	var lines []string
	for _, family := range families.All() {
		for _, finalizer := range family.Finalizers {
			lines = append(lines, fmt.Sprintf("| `%s` | %s | %s |\n", finalizer, kinds(family), family.Name))
		}
	}
	slices.Sort(lines)
	page.WriteString(strings.Join(lines, ""))
	return page.String()
}

// kinds returns the kinds of the row with their groups, as in "A, B (example.com)".
func kinds(family families.Family) string {
	if len(family.Kinds) == 0 {
		return "any kind"
	}
	var groups []string
	byGroup := map[string][]string{}
	for _, name := range family.Kinds {
		kind, group, _ := strings.Cut(name, ".")
		if byGroup[group] == nil {
			groups = append(groups, group)
		}
		byGroup[group] = append(byGroup[group], kind)
	}
	for i, group := range groups {
		groups[i] = strings.Join(byGroup[group], ", ")
		if group != "" {
			groups[i] += " (" + group + ")"
		}
	}
	return strings.Join(groups, ", ")
}
