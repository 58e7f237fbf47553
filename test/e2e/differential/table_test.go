package differential

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// verdict is the result of a scenario.
type verdict int

const (
	equal    verdict = iota // no difference
	differs                 // intended differences only
	failed                  // any other result
	verdicts                // the number of verdicts
)

// String returns the name of the verdict.
func (v verdict) String() string { return enum.Name(v, "equal", "differs", "failed") }

func outcomeOf(intended []difference) verdict {
	if len(intended) == 0 {
		return equal
	}
	return differs
}

// tally has the results of the scenarios, by topic.
type tally struct {
	mu         sync.Mutex
	topics     map[string]*[verdicts]int
	namespaces []string // of equal scenarios with the gate on
	// shown has the events and phase changes that both sides have shown for the same
	// object in the same scenario.
	shown map[string]bool
}

var results = tally{topics: map[string]*[verdicts]int{}, shown: map[string]bool{}}

// endedEqual reports whether the scenario with the namespace had equal outcomes.
func (t *tally) endedEqual(namespace string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.namespaces, namespace)
}

func (t *tally) add(s *scenario, v verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.topics[s.topic] == nil {
		t.topics[s.topic] = &[verdicts]int{}
	}
	t.topics[s.topic][v]++
	if v == equal && s.Gate == "" {
		t.namespaces = append(t.namespaces, s.namespace)
	}
}

// table returns the tally as Markdown, with a total line.
func (t *tally) table() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var total [verdicts]int
	rows := [][]string{{"topic", "scenarios", "equal", "intended differences"}}
	line := func(name string, counts [verdicts]int) {
		row := []string{name}
		for _, n := range []int{counts[equal] + counts[differs] + counts[failed], counts[equal], counts[differs]} {
			row = append(row, fmt.Sprint(n))
		}
		if counts[failed] > 0 {
			row[0] += fmt.Sprintf(" (%d FAILED)", counts[failed])
		}
		rows = append(rows, row)
	}
	for _, topic := range slices.Sorted(maps.Keys(t.topics)) {
		line(topic, *t.topics[topic])
		for v, n := range t.topics[topic] {
			total[v] += n
		}
	}
	line("total", total)
	return layOut(rows)
}

// layOut writes rows as an aligned Markdown table.
func layOut(rows [][]string) string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var text strings.Builder
	for n, row := range rows {
		for i, cell := range row {
			fmt.Fprintf(&text, "| %-*s ", widths[i], cell)
		}
		text.WriteString("|\n")
		if n == 0 {
			for _, width := range widths {
				text.WriteString("|" + strings.Repeat("-", width+2))
			}
			text.WriteString("|\n")
		}
	}
	return text.String()
}

// report writes the table to the file that EXEUNT_TABLE names, which make prints.
func report() error {
	file := os.Getenv("EXEUNT_TABLE")
	if file == "" || len(results.topics) == 0 {
		return nil
	}
	return os.WriteFile(file, []byte(results.table()), 0o600)
}

// document is the page with the counts and the intended differences.
var document = filepath.Join("..", "..", "..", "docs", "differences.md")

func TestDocumentNamesEveryDifference(t *testing.T) {
	all, err := scenarios()
	if err != nil {
		t.Fatal(err)
	}
	named, err := loadIntended()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{topicTable(all, named), differenceTable(named)} {
		if !strings.Contains(string(page), want) {
			t.Errorf("%s does not have this table:\n%s", document, want)
		}
	}
}

// topicTable returns the table of topics. The comparison fails if a scenario has another result.
func topicTable(all []*scenario, named *intended) string {
	expected := tally{topics: map[string]*[verdicts]int{}}
	for _, one := range all {
		expected.add(one, outcomeOf(named.of(one.Name)))
	}
	return expected.table()
}

// differenceTable returns the table of the intended differences.
func differenceTable(named *intended) string {
	var text strings.Builder
	text.WriteString("| difference | what and why | scenarios |\n|---|---|---|\n")
	for _, why := range slices.Sorted(maps.Keys(named.Reasons)) {
		scenarios := 0
		for _, one := range named.Scenarios {
			if slices.Contains(one.Why, why) {
				scenarios++
			}
		}
		fmt.Fprintf(&text, "| %s | %s | %d |\n", strings.ReplaceAll(why, "-", " "), strings.TrimSpace(named.Reasons[why]),
			scenarios)
	}
	return text.String()
}

// Events and phase changes that both sides must have shown for the same object in the same
// scenario.
var promised = []string{
	"claim event Normal FailedBinding",
	"claim event Warning FailedBinding",
	"claim event Warning VolumeMismatch",
	"claim event Warning ClaimLost",
	"claim event Warning ClaimMisbound",
	"claim event Normal WaitForFirstConsumer",
	"claim event Normal WaitForPodScheduled",
	"claim event Normal ExternalProvisioning",
	"claim event Warning ProvisioningFailed",
	"claim event Normal ProvisioningSucceeded",
	"volume event Warning VolumeMismatch",
	"volume event Warning VolumeFailedDelete",
	"volume event Warning VolumeFailedRecycle",
	"volume event Normal VolumeRecycled",
	"claim from Pending to Bound",
	"claim from Pending to Lost",
	"claim from Bound to Lost",
	"claim from Lost to Bound",
	"volume from Pending to Available",
	"volume from Pending to Bound",
	"volume from Pending to Released",
	"volume from Available to Bound",
	"volume from Bound to Released",
	"volume from Released to Available",
	"volume from Released to Failed",
	"volume from Failed to Available",
}

// It runs after the scenarios.
func TestBothSidesShowEveryReasonAndPhase(t *testing.T) {
	for _, what := range promised {
		t.Run(what, func(t *testing.T) {
			if !results.shown[what] {
				t.Error("no scenario shows this on both sides")
			}
		})
	}
}

// show records the events and phases that both sides have shown for the same object.
func (t *tally) show(ours, upstream outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for what, value := range ours {
		if upstream[what] != value {
			continue
		}
		kind, _, _ := strings.Cut(what, " ")
		if _, event, found := strings.Cut(what, " words of "); found {
			for _, words := range strings.Split(value, wordsSeparator) {
				t.shown[kind+" "+event+": "+words] = true
			}
			continue
		}
		if _, event, found := strings.Cut(what, " event "); found {
			t.shown[kind+" event "+event] = true
		}
		if strings.HasSuffix(what, " phases") {
			phases := strings.Split(value, ", ")
			for i := range phases[1:] {
				t.shown[kind+" from "+phases[i]+" to "+phases[i+1]] = true
			}
		}
	}
}
