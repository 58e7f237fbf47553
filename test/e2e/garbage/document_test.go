package garbage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// document is the path of the page that is generated from the scenarios.
var document = filepath.Join("..", "..", "..", "docs", "garbage-differences.md")

const preamble = `# Garbage collection compared with kube-controller-manager

` + "`test/e2e/garbage`" + ` runs each scenario with garbage-collector and with garbage-collector-controller of the real
kube-controller-manager v1.36.3, against the same API server. Each difference is asserted on both sides: an outcome that differs
elsewhere fails a test, and so does a difference that is gone. ` + "`TestScenariosAmidKills`" + ` runs the first six themes once more, while
garbage-collector is killed and started again. This page is generated from the scenarios; a test keeps it current.

`

// documented are all scenarios, in the order of the document.
func documented() []theme {
	all := append(append([]theme{}, common...), late...)
	return append(all, theme{"New kinds", newKinds},
		theme{"A kind whose conversion webhook is broken", scenariosOf(unreadable)}, theme{"The collector is killed", scenariosOf(restarts)})
}

func TestDocumentNamesEveryScenario(t *testing.T) {
	seen := map[string]bool{}
	for _, theme := range documented() {
		for _, s := range theme.scenarios {
			if seen[s.name] {
				t.Errorf("two scenarios are called %q", s.name)
			}
			seen[s.name] = true
		}
	}
	want := describe(documented())
	if os.Getenv("EXEUNT_UPDATE") != "" {
		must(t, os.WriteFile(document, []byte(want), 0o600), "write document")
	}
	if have, err := os.ReadFile(document); err != nil || string(have) != want {
		t.Errorf("%s is out of date (%v); generate it: EXEUNT_UPDATE=1 go test ./test/e2e/garbage -run %s", document, err, t.Name())
	}
}

// describe returns the document.
func describe(themes []theme) string {
	var text strings.Builder
	text.WriteString(preamble)
	text.WriteString("| theme | scenarios | same outcome | other outcome |\n|---|---|---|---|\n")
	var total [3]int
	for _, theme := range themes {
		counts := theme.count()
		for i := range total {
			total[i] += counts[i]
		}
		writeRow(&text, theme.name, counts)
	}
	writeRow(&text, "total", total)
	text.WriteString("\n## Differences\n\n| with garbage-collector | with kube-controller-manager | why |\n|---|---|---|\n")
	for _, theme := range themes {
		for _, s := range theme.scenarios {
			if s.stock != nil {
				fmt.Fprintf(&text, "| %s | %s | %s |\n", s.name, s.stock.does, s.stock.why)
			}
		}
	}
	text.WriteString("\n## Scenarios\n")
	for _, theme := range themes {
		fmt.Fprintf(&text, "\n### %s\n\n", theme.name)
		for _, s := range theme.scenarios {
			text.WriteString("- " + s.name + s.notes() + "\n")
		}
	}
	return text.String()
}

func writeRow(text *strings.Builder, name string, counts [3]int) {
	fmt.Fprintf(text, "| %s | %d | %d | %d |\n", name, counts[0], counts[1], counts[2])
}

// count returns the number of scenarios, and of those with the same and another outcome with
// upstream's controller.
func (t theme) count() (counts [3]int) {
	for _, s := range t.scenarios {
		counts[0]++
		if s.stock != nil {
			counts[2]++
		} else {
			counts[1]++
		}
	}
	return counts
}

// notes returns what the list of scenarios says beside the name.
func (s scenario) notes() string {
	var notes []string
	if s.about != "" {
		notes = append(notes, s.about)
	}
	if s.stock != nil {
		notes = append(notes, "**differs**")
	}
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, "; ") + ")"
}
