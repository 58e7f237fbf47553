package printer_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why"
	"github.com/exeunt-io/exeunt/pkg/why/printer"
	"github.com/exeunt-io/exeunt/test/enumtest"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// volume is the report of a volume with two blockers, one of which waits for another.
var volume = blocker.Report{
	Object:  blocker.Object{Kind: "PersistentVolume", Name: "pv", UID: "1"},
	Verdict: blocker.Stuck,
	Blockers: []blocker.Blocker{
		{
			Object: blocker.Object{Kind: "PersistentVolume", Name: "pv", UID: "1"}, Reason: blocker.DriverRefuses,
			Verdict:   blocker.Stuck,
			Finalizer: "external-provisioner.volume.kubernetes.io/finalizer", Holder: "csi.example.com",
			Since: "2026-01-01T10:00:00Z",
			Evidence: []blocker.Evidence{{Source: blocker.FromEvent,
				Text: "VolumeFailedDelete: rpc error: code = FailedPrecondition desc = the volume has snapshots, delete them first"}},
			Next: "# the driver says why\nkubectl describe persistentvolume pv --context 'a context with a long name and spaces' -o jsonpath='{.status}'",
		},
		{
			Object: blocker.Object{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}, Reason: blocker.ClaimExists,
			Verdict: blocker.Waiting,
			Blockers: []blocker.Blocker{{Object: blocker.Object{Kind: "Pod", Namespace: "shop", Name: "db-0"},
				Reason: blocker.PodUsesClaim, Verdict: blocker.Waiting, Next: "delete the pod"}},
		},
	},
	Incomplete: []string{"no right to list leases"},
}.Normalized()

const volumeText = `stuck: PersistentVolume pv
├─ stuck DriverRefuses: PersistentVolume pv
│    finalizer: external-provisioner.volume.kubernetes.io/finalizer
│    holder: csi.example.com
│    since: 2026-01-01T10:00:00Z (120m)
│    event: VolumeFailedDelete: rpc error: code = FailedPrecondition desc = the
│      volume has snapshots, delete them first
│    next: # the driver says why
│          kubectl describe persistentvolume pv --context 'a context with a long name and spaces' -o jsonpath='{.status}'
└─ waiting ClaimExists: PersistentVolumeClaim shop/data
   └─ waiting PodUsesClaim: Pod shop/db-0
        next: delete the pod
incomplete: no right to list leases
`

func TestFormatsHaveNames(t *testing.T) { enumtest.ExpectNames(t, printer.Text, printer.Name) }

func TestReportIsTreeOf80Columns(t *testing.T) {
	var out strings.Builder
	if err := (printer.Printer{Out: &out}).Report(volume, now); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(volumeText, out.String()); diff != "" {
		t.Errorf("the tree differs:\n%s", diff)
	}
	expectNarrow(t, out.String())
}

func expectNarrow(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if width := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width > 80 &&
			!strings.Contains(line, "kubectl ") {
			t.Errorf("%d columns: %s", width, line)
		}
	}
}

func TestNarrowTerminalBreaksNoWord(t *testing.T) {
	words := func(columns int) []string {
		var out strings.Builder
		if err := (printer.Printer{Out: &out, Columns: columns}).Report(volume, now); err != nil {
			t.Fatal(err)
		}
		return strings.Fields(strings.NewReplacer("├─", "", "└─", "", "│", "").Replace(out.String()))
	}
	if diff := cmp.Diff(words(1000), words(60)); diff != "" {
		t.Errorf("the words of 60 columns differ:\n%s", diff)
	}
}

func TestReportsWithoutBlockersAreSentences(t *testing.T) {
	for verdict, want := range map[blocker.Verdict]string{
		blocker.Gone:    "gone: Pod a/p is gone, or never was\n",
		blocker.None:    "none: Pod a/p, no deletion was requested\n",
		blocker.Waiting: "waiting: Pod a/p, nothing keeps it: it goes now\n",
	} {
		var out strings.Builder
		report := blocker.Report{Object: blocker.Object{Kind: "Pod", Namespace: "a", Name: "p"}, Verdict: verdict}
		if err := (printer.Printer{Out: &out}).Report(report, now); err != nil || out.String() != want {
			t.Errorf("%v is printed as %q, %v, want %q", verdict, out.String(), err, want)
		}
	}
}

func TestJSONAndYAMLKeepContract(t *testing.T) {
	for format, unmarshal := range map[printer.Format]func([]byte, *blocker.Report) error{
		printer.JSON: func(text []byte, r *blocker.Report) error { return json.Unmarshal(text, r) },
		printer.YAML: func(text []byte, r *blocker.Report) error { return yaml.Unmarshal(text, r) },
	} {
		var out strings.Builder
		if err := (printer.Printer{Out: &out, Format: format}).Report(volume, now); err != nil {
			t.Fatal(err)
		}
		var read blocker.Report
		if err := unmarshal([]byte(out.String()), &read); err != nil {
			t.Fatalf("%v: %v in %s", format, err, out.String())
		}
		if diff := cmp.Diff(volume, read); diff != "" {
			t.Errorf("%v differs:\n%s", format, diff)
		}
	}
}

func TestTextFromClusterCannotControlTerminal(t *testing.T) {
	hostile := "\x1b[2J\u009b31m\u202eevil\u2066\x7f\U000e0001"
	report := blocker.Report{
		Object: blocker.Object{Kind: hostile, Name: hostile}, Verdict: blocker.Unknown, Incomplete: []string{hostile},
		Blockers: []blocker.Blocker{{Finalizer: hostile, Holder: hostile, Since: hostile, Next: hostile,
			Evidence: []blocker.Evidence{{Source: blocker.Source(hostile), Text: hostile}}}},
	}.Normalized()
	for format := printer.Text; format <= printer.Name; format++ {
		var out strings.Builder
		p := printer.Printer{Out: &out, Format: format}
		if err := p.Report(report, now); err != nil {
			t.Fatal(err)
		}
		if err := p.Survey(why.Survey{Items: []blocker.Report{report}, Incomplete: []string{hostile}}, now); err != nil {
			t.Fatal(err)
		}
		if i := strings.IndexAny(out.String(), hostile[:1]+"\u009b\u202e\u2066\x7f\U000e0001"); i >= 0 {
			t.Errorf("%q prints a control character: %q", format, out.String())
		}
	}
}

func TestColorsAreOnlyAroundVerdicts(t *testing.T) {
	var out strings.Builder
	if err := (printer.Printer{Out: &out, Color: true}).Report(volume, now); err != nil {
		t.Fatal(err)
	}
	colored := strings.NewReplacer("\x1b[31m", "", "\x1b[33m", "", "\x1b[32m", "", "\x1b[0m", "").Replace(out.String())
	if !strings.HasPrefix(out.String(), "\x1b[31mstuck\x1b[0m: ") || colored != volumeText {
		t.Errorf("the colored tree is\n%s", out.String())
	}
}

func TestManyBlockersAreCutOff(t *testing.T) {
	report := blocker.Report{Object: blocker.Object{Kind: "Namespace", Name: "n"}, Verdict: blocker.Waiting}
	for i := range 25 {
		report.Blockers = append(report.Blockers, blocker.Blocker{Object: blocker.Object{Kind: "Pod", Name: fmt.Sprint(i)},
			Reason: blocker.ContentRemains, Verdict: blocker.Waiting})
	}
	var out, wide strings.Builder
	_ = printer.Printer{Out: &out}.Report(report, now)
	_ = printer.Printer{Out: &wide, Format: printer.Wide}.Report(report, now)
	if !strings.Contains(out.String(), "... and 5 more, -o wide shows all") || strings.Contains(out.String(), "Pod 20") ||
		!strings.Contains(wide.String(), "Pod 24") {
		t.Errorf("the text is\n%s\nand wide\n%s", out.String(), wide.String())
	}
}

func TestSurveyIsGroupedByRoot(t *testing.T) {
	survey := why.Survey{Incomplete: []string{"no right to list a; grant x", "no right to list b; grant x",
		"no right to list c; grant x", "no right to list d; grant x", "slow"}}
	for i := range 8 {
		survey.Items = append(survey.Items, blocker.Report{
			Object:  blocker.Object{Kind: "PersistentVolume", Name: fmt.Sprintf("pvc-%d-%s", i, strings.Repeat("long", 20))},
			Verdict: blocker.Stuck,
			Blockers: []blocker.Blocker{{Reason: blocker.DriverMissing, Holder: "csi.example.com", Verdict: blocker.Stuck,
				Since: "2026-01-01T09:00:00Z", Next: "install the driver"}},
		})
	}
	var out strings.Builder
	if err := (printer.Printer{Out: &out}).Survey(survey, now); err != nil {
		t.Fatal(err)
	}
	expectNarrow(t, out.String())
	for _, want := range []string{"stuck DriverMissing: csi.example.com, 8 objects\n", "  3h\n", "... and 3 more",
		"next: install the driver", "no right to list 4 kinds: a, b, c, d;", "incomplete: slow"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := (printer.Printer{Out: &out, Format: printer.Name}).Survey(survey, now); err != nil ||
		strings.Count(out.String(), "persistentvolume/pvc-") != 8 {
		t.Errorf("the names are %q, %v", out.String(), err)
	}
}

func TestEmptySurveyTellsWhatWasUnseen(t *testing.T) {
	for want, survey := range map[string]why.Survey{
		"nothing waits for its deletion\n":                                 {},
		"nothing that was seen waits for its deletion\nincomplete: late\n": {Incomplete: []string{"late"}},
		"nothing that was seen has waited for 60s or longer\n" +
			"3 objects wait for less than 60s: --older-than=0 shows what they wait for\n": {Younger: 3,
			OlderThan: time.Minute},
	} {
		var out strings.Builder
		if err := (printer.Printer{Out: &out}).Survey(survey, now); err != nil || out.String() != want {
			t.Errorf("printed %q, %v, want %q", out.String(), err, want)
		}
	}
}

// A name without its namespace would be that of another object.
func TestNamesOfSeveralNamespacesAreRefused(t *testing.T) {
	waits := func(namespace string) blocker.Report {
		return blocker.Report{Verdict: blocker.Waiting, Object: blocker.Object{Kind: "Pod", Namespace: namespace,
			Name: "pod"}}
	}
	for namespaces, refused := range map[[2]string]bool{{"a", "a"}: false, {"a", "b"}: true, {"a", ""}: false} {
		var out strings.Builder
		err := printer.Printer{Out: &out,
			Format: printer.Name}.Survey(why.Survey{Items: []blocker.Report{waits(namespaces[0]), waits(namespaces[1])}},
			time.Now())
		if (err != nil) != refused || refused && out.Len() > 0 {
			t.Errorf("%v: %v, printed %q", namespaces, err, &out)
		}
	}
}

func TestDeadlineIsPrintedWithTimeLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		deadline blocker.Deadline
		want     string
		row      string
	}{
		"ahead": {blocker.Deadline{Requested: "2026-01-01T11:59:00Z", Time: "2026-01-01T12:04:00Z", Source: blocker.FromField},
			"  deadline: 2026-01-01T12:04:00Z (4m left), 300 s after the request of\n    2026-01-01T11:59:00Z; by field metadata.deletionTimestamp\n", "Machine n/a, deadline 4m left"},
		"passed": {blocker.Deadline{Requested: "2026-01-01T11:50:00Z", Time: "2026-01-01T11:55:00Z", Source: blocker.FromAnnotation},
			"  deadline: 2026-01-01T11:55:00Z (passed 5m ago), 300 s after the request of\n    2026-01-01T11:50:00Z; by annotation exeunt.io/deletion-window\n", "Machine n/a, deadline passed 5m ago"},
		"forced": {blocker.Deadline{Requested: "2026-01-01T11:55:00Z", Time: "2026-01-01T11:55:00Z", Forced: true, Source: blocker.FromAnnotation},
			"  forced: 2026-01-01T11:55:00Z (5m), the object is to end at once; by annotation\n    exeunt.io/deletion-window\n", "Machine n/a, forced"},
	} {
		t.Run(name, func(t *testing.T) {
			report := blocker.Report{Object: blocker.Object{Kind: "Machine", Namespace: "n", Name: "a"},
				Verdict: blocker.Waiting, Deadline: &tc.deadline}
			var one, all strings.Builder
			if err := (printer.Printer{Out: &one}).Report(report, now); err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(one.String(), tc.want) {
				t.Errorf("printed is %q, want %q at its end", one.String(), tc.want)
			}
			expectNarrow(t, one.String())
			if err := (printer.Printer{Out: &all}).Survey(why.Survey{Items: []blocker.Report{report}}, now); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(all.String(), tc.row) {
				t.Errorf("the list is %q, want %q in it", all.String(), tc.row)
			}
		})
	}
}
