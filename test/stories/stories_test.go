package stories

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/test/demo"
)

// results are those of two stories.
var results = []Result{
	{Story: "killed", Pair: demo.Ours},
	{Story: "killed", Pair: demo.Upstream, VolumesLeft: 1},
	{Story: "pv-first", Pair: demo.Ours, Measures: []Measure{{Name: "volumes bound per second", Value: "90"}}},
	{Story: "pv-first", Pair: demo.Upstream, VolumesLeft: 2, Unfinished: "wait until x: not within 5m0s"},
}

func TestStoriesAreComplete(t *testing.T) {
	names := map[string]bool{}
	for _, story := range All() {
		if story.Name == "" || story.What == "" || story.run == nil && story.own == nil || names[story.Name] {
			t.Errorf("story %+v is incomplete or there twice", story)
		}
		names[story.Name] = true
		var faults []map[string]any
		if err := yaml.Unmarshal([]byte(story.Faults), &faults); err != nil {
			t.Errorf("faults of %s: %v", story.Name, err)
		}
	}
}

func TestSelectKeepsTheOrderOfTheTable(t *testing.T) {
	chosen, err := Select([]string{"namespace", "killed"})
	if err != nil || len(chosen) != 2 || chosen[0].Name != "killed" || chosen[1].Name != "namespace" {
		t.Errorf("Select = %v, %v", chosen, err)
	}
	if _, err := Select([]string{"x"}); err == nil || !strings.Contains(err.Error(), "killed, policy-race, pv-first") {
		t.Errorf("Select of an unknown name: %v, want the known names", err)
	}
}

func TestOnlyOurResultsCanBreakAPromise(t *testing.T) {
	if err := broken(results); err != nil {
		t.Errorf("broken = %v, although ours left nothing", err)
	}
	for name, tc := range map[string]struct {
		ours Result
		want string
	}{
		"a volume is left":  {Result{Story: "a", Pair: demo.Ours, VolumesLeft: 1}, "keep what was promised: a: 1 volumes left"},
		"it did not finish": {Result{Story: "a", Pair: demo.Ours, Unfinished: "late"}, "keep what was promised: a: 0 volumes left; late"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := broken(append(results, tc.ours)); err == nil || err.Error() != tc.want {
				t.Errorf("broken = %v, want %s", err, tc.want)
			}
		})
	}
}

// A story with an API server of its own has no volumes, and promises what is measured.
func TestPromisedValueThatIsMissedIsNamed(t *testing.T) {
	result := Result{Story: "grace", Pair: demo.Ours, NoVolumes: true,
		Measures: []Measure{{Name: "guests that shut down cleanly", Value: "19", Promised: "20"}}}
	const want = "keep what was promised: grace: guests that shut down cleanly: 19 instead of 20"
	if err := broken([]Result{result}); err == nil || err.Error() != want || len(result.all()) != 1 {
		t.Errorf("broken = %v, want %s; measures %v", err, want, result.all())
	}
	result.Measures[0].Value = "20"
	if err := broken([]Result{result}); err != nil {
		t.Error(err)
	}
}

// make demo builds neither kube-apiserver of Exeunt nor waits for deadlines of nodes.
func TestStoryWithItsOwnClusterIsRunIfNamed(t *testing.T) {
	chosen, err := Select([]string{"node", "grace", "killed"})
	own, shared := Config{Stories: chosen}.split()
	if err != nil || len(own) != 2 || own[0].Name != "grace" || own[1].Name != "node" || len(shared) != 1 {
		t.Errorf("%v, %v, %v", own, shared, err)
	}
	chosen, err = Select(nil)
	if own, shared := (Config{Stories: chosen}).split(); err != nil || len(own) > 0 || len(shared) != len(All())-3 {
		t.Errorf("by default: %v, %v, %v", own, shared, err)
	}
}

func TestOnlyThePolicyRaceNeedsTheAdmissionPolicy(t *testing.T) {
	stories, left := withoutAdmission(All())
	if len(stories) != len(All())-1 || !slices.Equal(left, []string{"policy-race"}) {
		t.Errorf("without the admission policy %d stories are run and %q are left out", len(stories), left)
	}
	for _, story := range stories {
		if story.Name == left[0] {
			t.Errorf("%s is run without the admission policy", story.Name)
		}
	}
}

// show has a printer show a story and the summary.
func show(t *testing.T, printer Printer) {
	t.Helper()
	if err := printer.Begin(Story{Name: "killed", What: "it is killed"}); err != nil {
		t.Fatal(err)
	}
	printer.Step(Step{"killed", demo.Ours, 1.5, "kill -9"})
	if err := printer.End(results[3]); err != nil {
		t.Fatal(err)
	}
	if err := printer.Summarize(results); err != nil {
		t.Fatal(err)
	}
}

func TestTextPrinterComparesBothPairs(t *testing.T) {
	var out bytes.Buffer
	show(t, NewTextPrinter(&out))
	want := `
killed: it is killed
  1.500  ours      kill -9
         upstream  → volumes left in storage: 2, unfinished
         upstream  → wait until x: not within 5m0s

STORY      MEASURED                   OURS   UPSTREAM
killed     volumes left in storage    0      1
pv-first   volumes left in storage    0      2, unfinished
pv-first   volumes bound per second   90     -
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestJSONPrinterPrintsOneObjectPerLine(t *testing.T) {
	var out bytes.Buffer
	show(t, NewJSONPrinter(&out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, kind := range []string{"step", "result", "verdict"} {
		var line struct {
			Kind       string
			AsPromised bool
			Results    []Result
		}
		if err := json.Unmarshal([]byte(lines[i]), &line); err != nil {
			t.Fatal(err)
		}
		if line.Kind != kind || kind == "verdict" && (!line.AsPromised || cmp.Diff(results, line.Results) != "") {
			t.Errorf("line %d is %s", i, lines[i])
		}
	}
}

// closedWriter is where nothing can be written to.
type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestOutputErrorOfStepsIsReported(t *testing.T) {
	for name, printer := range map[string]Printer{"text": NewTextPrinter(closedWriter{}),
		"JSON": NewJSONPrinter(closedWriter{})} {
		printer.Step(Step{})
		if err := printer.End(Result{}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: End = %v, want the error of the step", name, err)
		}
	}
}
