package docs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/families"
)

const reasonsHead = `# Reasons

Why a deletion waits. ` + "`exeunt why`" + ` prints one of these reasons for each blocker, the event ` + "`DeletionWaiting`" + ` names it, and the
metric ` + "`exeunt_deletion_waiting`" + ` has it as the label ` + "`blocker`" + `. ` + "`exeunt explain REASON`" + ` prints the same text.

The reason says what the deletion waits for. The verdict beside it says whether it will come: ` + "`waiting`" + ` will, ` + "`stuck`" + ` will not
without help, and ` + "`unknown`" + ` means that nothing shows which.

Generated from the code by ` + "`go generate ./docs`" + `.
`

// reasonsPage returns docs/reasons.md.
func reasonsPage(*testing.T) string {
	var page strings.Builder
	page.WriteString(reasonsHead)
	page.WriteString("\n| reason | meaning |\n|---|---|\n")
	for _, reason := range blocker.Reasons() {
		row := reason.Describe()
		fmt.Fprintf(&page, "| [%s](#%s) | %s |\n", row.Name, anchor(row.Name), row.Meaning)
	}
	for _, reason := range blocker.Reasons() {
		row := reason.Describe()
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n- Where to look: %s\n- What force costs: %s\n", row.Name, row.Meaning, row.Look, row.Force)
	}
	return page.String()
}

const finalizersHead = `# Finalizers

Which controller removes which finalizer, when, how to see that the controller lives, and what is lost if the finalizer is
removed by hand. ` + "`exeunt why`" + ` knows these finalizers; of any other it says which field manager set it and which workloads
may work with it. ` + "`*`" + ` stands for any text.

A finalizer is removed by hand only as the last resort: when its controller is proven gone, and what the controller would have
cleaned up is cleaned up or is to stay.

Generated from the code by ` + "`go generate ./docs`" + `.
`

// finalizersPage returns docs/finalizers.md.
func finalizersPage(*testing.T) string {
	var page strings.Builder
	page.WriteString(finalizersHead)
	page.WriteString("\n## By finalizer\n\n| finalizer | on | set by |\n|---|---|---|\n")
	var lines []string
	for _, family := range families.All() {
		for _, finalizer := range family.Finalizers {
			lines = append(lines, fmt.Sprintf("| `%s` | %s | [%s](#%s) |\n", finalizer, kinds(family), family.Name, anchor(family.Name)))
		}
	}
	slices.Sort(lines)
	page.WriteString(strings.Join(lines, ""))
	page.WriteString("\n## By project\n")
	for _, name := range names() {
		fmt.Fprintf(&page, "\n### %s\n", name)
		for _, family := range families.All() {
			if family.Name == name {
				page.WriteString(section(family))
			}
		}
	}
	return page.String()
}

// section returns the section of a row.
func section(family families.Family) string {
	var removers []string
	for _, controller := range family.Controllers() {
		removers = append(removers, controller.Name)
	}
	path := regexp.MustCompile(`/blob/[^/]+/`).Split(family.Source, 2)[1]
	return fmt.Sprintf("\n`%s` on %s\n\n- Removed by %s when %s.\n- Alive: %s.\n- Lost if removed by hand: %s.\n- Set in [%s](%s).\n",
		strings.Join(family.Finalizers, "`, `"), kinds(family), strings.Join(removers, " or "), family.When, family.Alive, family.Force, path, family.Source)
}

// names returns the names of the projects, in the order of the table.
func names() []string {
	var names []string
	for _, family := range families.All() {
		if !slices.Contains(names, family.Name) {
			names = append(names, family.Name)
		}
	}
	return names
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

var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchor returns the anchor of a heading.
func anchor(heading string) string {
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
