package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// The markers of the differences in a page.
const (
	beginMarker = "<!-- Written by make against-upstream: begin. Changes by hand are lost. -->"
	endMarker   = "<!-- Written by make against-upstream: end. -->"
)

// pageText is the page of a run. Its verbs stand for the circumstances and the output.
const pageText = `# Ours and upstream's programs in the same stories

<!-- Written by make against-upstream. Changes by hand are lost. -->

Output of ` + "`bin/exeunt demo --against=upstream`" + `, with kube-controller-manager and csi-provisioner as upstream's pair.
Rates depend on the machine and what else ran on it; what is left in storage does not.

Run: %s.

` + "```\n%s\n```\n"

// whereLine is the line of the circumstances in a page.
var whereLine = regexp.MustCompile(`(?m)^Run: (.*)\.$`)

// gap separates the columns of the table.
var gap = regexp.MustCompile(` {2,}`)

// render returns the page of a run.
func render(where, output string) (string, error) {
	text := fmt.Sprintf(pageText, where, strings.Trim(output, "\n"))
	if _, err := differences(text); err != nil {
		return "", err
	}
	return text, nil
}

// update returns the page with the differences of a run between its markers.
func update(page, run string) (string, error) {
	table, err := differences(run)
	if err != nil {
		return "", err
	}
	before, rest, begins := strings.Cut(page, beginMarker)
	_, after, ends := strings.Cut(rest, endMarker)
	if !begins || !ends {
		return "", fmt.Errorf("the markers are missing: %s and %s", beginMarker, endMarker)
	}
	return before + beginMarker + "\n\n" + table + "\n" + endMarker + after, nil
}

// differences returns the rows of the last table of a run in which the pairs differ, as Markdown.
func differences(run string) (string, error) {
	where := whereLine.FindStringSubmatch(run)
	_, rows, found := strings.Cut(run, "\nSTORY ")
	if where == nil || !found {
		return "", errors.New("the run has no date or no table")
	}
	_, rows, _ = strings.Cut(rows, "\n")
	rows, _, _ = strings.Cut(rows, "\n```")
	text := "| story | measured | ours | upstream |\n|---|---|---|---|\n"
	for line := range strings.Lines(rows) {
		cells := gap.Split(strings.TrimSpace(line), -1)
		if len(cells) != 4 {
			return "", fmt.Errorf("the table has the line %q", line)
		}
		if cells[2] != cells[3] {
			text += "| " + strings.Join(cells, " | ") + " |\n"
		}
	}
	return text + "\nRun: " + where[1] + ".\n", nil
}
