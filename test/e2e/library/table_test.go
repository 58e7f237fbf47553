package library

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
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
func (s *scene) record(topic, left string) {
	s.t.Helper()
	s.t.Logf("| %s | %s | %s |", topic, s.engine, left)
	results.mu.Lock()
	defer results.mu.Unlock()
	results.rows = append(results.rows, row{topic, left, s.engine})
}

// markdown returns the table with a column for each engine.
func (t *table) markdown() string {
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
	var text strings.Builder
	fmt.Fprint(&text, "| case |")
	for _, e := range engines {
		fmt.Fprintf(&text, " %s |", e)
	}
	fmt.Fprintln(&text, "\n|"+strings.Repeat("---|", len(engines)+1))
	for _, topic := range topics {
		fmt.Fprintf(&text, "| %s |", topic)
		for _, e := range engines {
			fmt.Fprintf(&text, " %s |", cells[topic+string(e)])
		}
		fmt.Fprintln(&text)
	}
	return text.String()
}

// write prints the table, and writes the file if one is named.
func (t *table) write() error {
	if len(t.rows) == 0 {
		return nil
	}
	fmt.Print(t.markdown())
	if file := os.Getenv(tableVariable); file != "" {
		return os.WriteFile(file, []byte(t.markdown()), 0o600)
	}
	return nil
}
