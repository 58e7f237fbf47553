package check_test

import (
	"os"
	"strings"
	"testing"

	. "github.com/exeunt-io/exeunt/test/model/check"
)

// A reader must find what each rule means, and no rule that does not exist.
func TestDocumentListsEveryRule(t *testing.T) {
	text, err := os.ReadFile("../../../docs/architecture/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	tables := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 && strings.HasPrefix(cells[1], " `") {
			tables[strings.Trim(cells[1], " `")] = true
		}
	}
	for rule := DataLost; rule <= DiskMissing; rule++ {
		if !tables[rule.String()] {
			t.Errorf("docs/architecture/testing.md does not list %v", rule)
		}
		delete(tables, rule.String())
	}
	for name := range tables {
		t.Errorf("docs/architecture/testing.md lists %s, which is no rule", name)
	}
}
