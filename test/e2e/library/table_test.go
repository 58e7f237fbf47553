package library

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// tableVariable is the environment variable that names a file for the table.
const tableVariable = "EXEUNT_LIBRARY_TABLE"

// row is what one engine left in the storage system in one case.
type row struct {
	topic, left string
	engine      engine
}

// table is what each engine left, by case.
type table struct {
	mu   sync.Mutex
	rows []row
}

var results table

// record logs and keeps one line.
func (s *fixture) record(topic, left string) {
	s.T.Helper()
	s.T.Logf("| %s | %s | %s |", topic, s.engine, left)
	results.mu.Lock()
	defer results.mu.Unlock()
	results.rows = append(results.rows, row{topic, left, s.engine})
}

// readme has the lines on which the engines differ.
var readme = harness.InCheckout("examples", "hostpath-provisioner", "README.md")

// lines returns one line for each case: as the table has it, and whether all engines
// played the case and whether they differ.
func (t *table) lines() []line {
	t.mu.Lock()
	defer t.mu.Unlock()
	var topics []string
	cells := map[string]string{}
	for _, r := range t.rows {
		if !slices.Contains(topics, r.topic) {
			topics = append(topics, r.topic)
		}
		cells[r.topic+string(r.engine)] = r.left
	}
	slices.Sort(topics)
	var all []line
	for _, topic := range topics {
		l := line{text: "| " + topic + " |", whole: true}
		for _, e := range engines {
			left := cells[topic+string(e)]
			l.text += " " + left + " |"
			l.whole = l.whole && left != ""
			l.differs = l.differs || left != cells[topic+string(exeunt)]
		}
		all = append(all, l)
	}
	return all
}

type line struct {
	text           string
	whole, differs bool
}

// write prints the table, and writes the file if one is named. It returns an error if the
// example's README says something else.
func (t *table) write() error {
	lines := t.lines()
	if len(lines) == 0 {
		return nil
	}
	var text strings.Builder
	fmt.Fprint(&text, "| case |")
	for _, e := range engines {
		fmt.Fprintf(&text, " %s |", e)
	}
	fmt.Fprintln(&text, "\n|"+strings.Repeat("---|", len(engines)+1))
	for _, l := range lines {
		fmt.Fprintln(&text, l.text)
	}
	fmt.Print(text.String())
	if file := os.Getenv(tableVariable); file != "" {
		if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
			return err
		}
	}
	documented, err := os.ReadFile(readme)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if l.whole && l.differs && !strings.Contains(string(documented), l.text+"\n") {
			return fmt.Errorf("%s lacks the line %s", readme, l.text)
		}
	}
	return nil
}
