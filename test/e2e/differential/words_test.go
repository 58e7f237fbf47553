package differential

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// keyWordTable has the key words of event messages that scripts and people search for, by
// kind of the object and type and reason of the event.
var keyWordTable = sync.OnceValues(func() (map[string][]string, error) {
	var table map[string][]string
	return table, load(filepath.Join("testdata", "keywords.yaml"), &table)
})

const (
	wordsSeparator = " | "
	// noWords stands for messages without key words.
	noWords = "none"
)

// keyWords returns the key words in the messages. Events of the provisioner are not
// compared, because the provisioner is ours on both sides.
func keyWords(kind, event string, messages []string) (string, bool) {
	if kind == "pod" || strings.HasSuffix(event, ofProvisioner) {
		return "", false
	}
	table, err := keyWordTable()
	if err != nil {
		return err.Error(), true
	}
	var found []string
	for _, words := range table[kind+" "+event] {
		if slices.ContainsFunc(messages, func(message string) bool { return strings.Contains(message, words) }) {
			found = append(found, words)
		}
	}
	if found == nil {
		return noWords, true
	}
	return strings.Join(found, wordsSeparator), true
}

// It runs after the scenarios. A key word must occur in upstream's messages.
func TestBothSidesShowUpstreamKeyWords(t *testing.T) {
	table, err := keyWordTable()
	if err != nil {
		t.Fatal(err)
	}
	for event, all := range table {
		for _, words := range all {
			if !results.shown[event+": "+words] {
				t.Errorf("%s: no scenario shows %q on both sides", event, words)
			}
		}
	}
	for shown := range results.shown {
		if event, without := strings.CutSuffix(shown, ": "+noWords); without {
			t.Errorf("%s: a message has none of the key words", event)
		}
	}
}
