package situations

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

func TestDocumentNamesEverySituation(t *testing.T) {
	page, err := os.ReadFile(harness.InCheckout("docs", "why.md"))
	if err != nil {
		t.Fatal(err)
	}
	if want := table(); !strings.Contains(string(page), want) {
		t.Errorf("docs/why.md does not have this table:\n%s", want)
	}
}

// table returns a row for each situation: numbers first, then letters.
func table() string {
	all := slices.SortedFunc(slices.Values(situations()), func(a, b situation) int {
		return cmp.Or(cmp.Compare(isLetter(a.number), isLetter(b.number)), cmp.Compare(a.number, b.number))
	})
	var b strings.Builder
	b.WriteString("| situation | verdict | reason |\n|---|---|---|\n")
	var last string
	for _, e := range all {
		var reasons []string
		for _, reason := range e.roots {
			reasons = append(reasons, reason.String())
		}
		row := fmt.Sprintf("| %s | %v | %s |\n", e.name, e.verdict, strings.Join(reasons, ", "))
		if row != last { // the same once more with --probe
			b.WriteString(row)
		}
		last = row
	}
	return b.String()
}

func isLetter(number string) int {
	if number[0] >= 'a' {
		return 1
	}
	return 0
}
