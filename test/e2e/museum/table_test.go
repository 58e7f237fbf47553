package museum

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

var write = flag.Bool("write", false, "write docs/museum.md instead of comparing it")

const tableHead = `# The museum of exeunt why

Situations in which a deletion waits, is stuck, or is no concern, and what ` + "`exeunt why`" + ` says about each. Each is built on a
real API server by ` + "`test/e2e/museum`" + `. The next step is carried out there, and the object goes. None that waits is ever
called stuck, nor with any one right taken away. Situations with a letter are healthy.

Generated from the tests by ` + "`go test ./test/e2e/museum -run TestTable -args -write`" + `.

| no. | situation | verdict | reason | next step |
|---|---|---|---|---|
`

func TestTableOfDocumentsIsCurrent(t *testing.T) {
	file := harness.InCheckout("docs", "museum.md")
	text := tableHead + tableRows()
	if *write {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(written), text); diff != "" {
		t.Errorf("docs/museum.md is out of date; run go test ./test/e2e/museum -run TestTable -args -write:\n%s", diff)
	}
}

// tableRows returns a row per exhibit: numbers first, then letters.
func tableRows() string {
	all := slices.SortedFunc(slices.Values(exhibits()), func(a, b exhibit) int {
		return cmp.Or(cmp.Compare(isLetter(a.number), isLetter(b.number)), cmp.Compare(a.number, b.number))
	})
	var b strings.Builder
	for _, e := range all {
		var reasons []string
		for _, reason := range e.roots {
			reasons = append(reasons, fmt.Sprintf("[%v](reasons.md#%s)", reason, strings.ToLower(reason.String())))
		}
		next := ""
		if e.next != "" {
			next = "`" + strings.ReplaceAll(e.next, "|", `\|`) + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %v | %s | %s |\n", e.number, e.name, e.verdict, strings.Join(reasons, ", "), next)
	}
	return b.String()
}

func isLetter(number string) int {
	if number[0] >= 'a' {
		return 1
	}
	return 0
}
