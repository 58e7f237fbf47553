package garbage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// document is the page with the counts and the differences.
var document = filepath.Join("..", "..", "..", "docs", "differences.md")

// documented are all scenarios, in the order of the document.
func documented() []theme {
	all := append(append([]theme{}, common...), late...)
	return append(all, theme{"New kinds", newKinds},
		theme{"A kind whose conversion webhook is broken", scenariosOf(unreadable)},
		theme{"The collector is killed", scenariosOf(restarts)})
}

func TestDocumentNamesEveryDifference(t *testing.T) {
	seen := map[string]bool{}
	for _, theme := range documented() {
		for _, s := range theme.scenarios {
			if seen[s.name] {
				t.Errorf("two scenarios are called %q", s.name)
			}
			seen[s.name] = true
		}
	}
	page, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{counts(documented()), differences(documented())} {
		if !strings.Contains(string(page), want) {
			t.Errorf("%s does not have this table:\n%s", document, want)
		}
	}
}

// counts returns the table of themes.
func counts(themes []theme) string {
	var text strings.Builder
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
	return text.String()
}

// differences returns the table of the scenarios that end otherwise with upstream's controller.
func differences(themes []theme) string {
	var text strings.Builder
	text.WriteString("| with garbage-collector | with kube-controller-manager | why |\n|---|---|---|\n")
	for _, theme := range themes {
		for _, s := range theme.scenarios {
			if s.stock != nil {
				fmt.Fprintf(&text, "| %s | %s | %s |\n", s.name, s.stock.does, s.stock.why)
			}
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
