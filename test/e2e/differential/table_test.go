package differential

import (
	"cmp"
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

// document is the path of the page with the table and the intended differences.
var document = filepath.Join("..", "..", "..", "docs", "differences.md")

func TestDocumentNamesEveryScenarioAndDifference(t *testing.T) {
	all, err := scenarios()
	if err != nil {
		t.Fatal(err)
	}
	named, err := loadIntended()
	if err != nil {
		t.Fatal(err)
	}
	want := describe(all, named)
	if os.Getenv("EXEUNT_UPDATE") != "" {
		if err := os.WriteFile(document, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(document)
	if err != nil || string(have) != want {
		t.Errorf("%s is out of date (%v); generate it: EXEUNT_UPDATE=1 go test ./test/e2e/differential -run %s", document, err, t.Name())
	}
}

// describe returns the document. The comparison fails if a scenario has another result.
func describe(all []*scenario, named *intended) string {
	var text strings.Builder
	expected := tally{topics: map[string]*[verdicts]int{}}
	for _, one := range all {
		expected.add(one, outcomeOf(named.of(one.Name)))
	}
	text.WriteString(preamble)
	text.WriteString(expected.table())
	text.WriteString("\n## Intended differences\n")
	for _, why := range slices.Sorted(maps.Keys(named.Reasons)) {
		fmt.Fprintf(&text, "\n### %s\n\n%s\n\n", strings.ReplaceAll(why, "-", " "), strings.TrimSpace(named.Reasons[why]))
		for _, one := range named.Scenarios {
			if slices.Contains(one.Why, why) {
				fmt.Fprintf(&text, "- %s\n", one.Scenario)
			}
		}
	}
	text.WriteString("\n## The scenarios\n")
	for _, topic := range topics(all) {
		fmt.Fprintf(&text, "\n### %s\n\n", topic)
		for _, one := range all {
			if one.topic == topic {
				fmt.Fprintf(&text, "- %s%s\n", one.Name, cmp.Or(map[string]string{"off": " (gate off)"}[one.Gate], ""))
			}
		}
	}
	return text.String()
}

const preamble = `# Compared with kube-controller-manager

` + "`make e2e`" + ` runs the scenarios in ` + "`test/e2e/differential/testdata/scenarios`" + ` with this pv-controller and with the
three loops of the real kube-controller-manager v1.36.3, with ` + "`KUBE=1.34`" + ` with those of [an older version](versions.md#what-works-with-what). It compares the final objects, the phases in between, the events
and the key words of their messages (` + "`testdata/keywords.yaml`" + `). A difference that ` + "`testdata/differences.yaml`" + `
does not name fails the test, and so does a named difference that does not occur. This page is generated from these files;
a test keeps it current.

## Messages of events

The events of both programs have the reasons of kube-controller-manager and csi-provisioner, and the key words of their
messages; ` + "`words_test.go`" + ` of each package lists the words. The rest of a message is our own. These key words are missing:

| event | upstream's words | here, and why |
|---|---|---|
| ` + "`ProvisioningFailed`" + `, the PersistentVolume cannot be written | "Deleting the volume." | the write is retried, and the volume stays in the storage system |
| ` + "`ProvisioningCleanupFailed`" + ` | "Please delete manually." | "retried with backoff" |
| ` + "`ProvisioningFailed`" + `, the secret of the class is missing | "error getting secret NAME in namespace NAMESPACE" | "The secret NAMESPACE/NAME, which storage class CLASS names, does not exist" |
| ` + "`ProvisioningFailed`" + `, no topology fits | "error generating accessibility requirements" | "choose where the volume is to be", then upstream's words for the reason |
| ` + "`VolumeFailedRecycle`" + `, an old recycler pod exists | "old recycler pod found, will retry later" | event ` + "`RecyclerPod`" + ` with the name of the pod: the pod is removed, and the volume is not Failed |

` + "`ExternalProvisioning` and `Provisioning`" + ` are sent once a claim has waited, or a call of the driver has taken, for two seconds:
a fast driver costs one event per volume, ` + "`ProvisioningSucceeded`" + `. Upstream sends all three at once. While a provisioner serves
other claims, a claim that waits is reported after half a minute. Claims that existed when the pv-controller began to lead get
` + "`ExternalProvisioning`" + ` at once. The scenarios do not compare these two where a claim is bound before. A failure that repeats
with the same text, ` + "`ProvisioningFailed` or `VolumeFailedDelete`" + `, is sent again after
30 seconds, then at growing intervals of at most 5 minutes; upstream sends it at each try.

The workqueues ` + "`claims`, `volumes`, `pvcprotection` and `pvprotection`" + ` have upstream's names. ` + "`provisioning` and `reclaims`" + `
exist here only, for in-tree plugins. A volume that is being deleted when its claim is deleted loses pv-protection in the queue
` + "`volumes`" + `, in the write that sets Released; ` + "`pvprotection`" + ` counts it while it is bound.

## The table

`
