package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// story are events of a run with the gate off.
var story = []Event{
	{Kind: kindStep, Who: you, What: "$ kubectl delete pv a"},
	{Kind: kindWrite, Seconds: 0.0014, Who: you, What: "deletes PV a", Code: "200"},
	{Kind: kindWrite, Seconds: 0.1, Who: "provisioner", What: "patches PV a → 409", Code: "409"},
	{Kind: kindCall, Seconds: 12.3456, Who: csiDriver, What: "CreateVolume vol-1 → OK", Volumes: 1},
	{Kind: kindState, Seconds: 12.5, Who: watched, What: "PV a: Bound, no finalizers", Told: true, Volumes: 1},
	{Kind: kindState, Seconds: 13, Who: watched, What: "PV a: gone from the API", Volumes: 1},
	{Kind: kindCheck, Seconds: 14, Who: you, What: "$ kubectl create -f marker.yaml", Volumes: 1},
	{Kind: kindWrite, Seconds: 15, Who: you, What: "creates PVC marker", Code: "201", Volumes: 1},
	{Kind: kindCall, Seconds: 123.4, Who: csiDriver, What: "CreateVolume vol-2 → OK", Volumes: 2},
}

// show has a printer show a run and the summary.
func show(t *testing.T, printer Printer, events []Event, outcome Outcome) {
	t.Helper()
	if err := printer.Begin(outcome.Gate); err != nil {
		t.Fatal(err)
	}
	for _, event := range events {
		if err := printer.Event(event); err != nil {
			t.Fatal(err)
		}
	}
	if err := printer.End(outcome); err != nil {
		t.Fatal(err)
	}
	if err := printer.Summarize([]Outcome{reclaimed, outcome}); err != nil {
		t.Fatal(err)
	}
}

func TestTextPrinterPrintsATable(t *testing.T) {
	var out bytes.Buffer
	show(t, NewTextPrinter(&out, false), story, leaked)
	want := `
HonorPVReclaimPolicy=false: the PV is deleted before its PVC

SECONDS  STORED  WHO            WHAT    (STORED: volumes in the storage system)

  0.000       0  you            $ kubectl delete pv a
  0.001       0  you            deletes PV a
  0.100       0  provisioner    patches PV a → 409
 12.346   0 → 1  CSI driver     CreateVolume vol-1 → OK
 13.000       1  state          PV a: gone from the API

 14.000       1  you            $ kubectl create -f marker.yaml
123.400   1 → 2  CSI driver     CreateVolume vol-2 → OK

HonorPVReclaimPolicy=false: 1 volume left behind in the storage system (vol-1): this is the leak
The PV had no finalizer of the provisioner: it was gone before any program called DeleteVolume.

RUN                          VOLUMES LEFT   EXPECTED   RESULT
HonorPVReclaimPolicy=true    0              0          reclaimed
HonorPVReclaimPolicy=false   1              1          leaked
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestTextPrinterStartsEachRunFromZero(t *testing.T) {
	var out bytes.Buffer
	printer := NewTextPrinter(&out, false)
	show(t, printer, story, leaked)
	out.Reset()
	show(t, printer, story[:2], reclaimed)
	if text := out.String(); !strings.Contains(text, "  0.001       0  you            deletes PV a\n") {
		t.Errorf("the second run is:\n%s\nwant its write, with no volumes", text)
	}
}

func TestColorChangesNoText(t *testing.T) {
	var plain, colored bytes.Buffer
	failed := Outcome{Gate: false, Volume: "vol-1"}
	show(t, NewTextPrinter(&plain, false), story, failed)
	show(t, NewTextPrinter(&colored, true), story, failed)
	text := colored.String()
	for _, painted := range []string{
		"\x1b[1m$ kubectl delete pv a\x1b[0m",
		"\x1b[31mpatches PV a → 409\x1b[0m",
		"\x1b[33mCreateVolume vol-1 → OK\x1b[0m",
		"\x1b[31m" + failed.Verdict() + "\x1b[0m",
	} {
		if !strings.Contains(text, painted) {
			t.Errorf("there is no %q in:\n%s", painted, text)
		}
	}
	for _, c := range []color{"0", bold, dim, red, green, yellow, cyan} {
		text = strings.ReplaceAll(text, "\x1b["+string(c)+"m", "")
	}
	if diff := cmp.Diff(plain.String(), text); diff != "" {
		t.Errorf("text without its colors (-plain +colored):\n%s", diff)
	}
}

func TestJSONPrinterPrintsOneObjectPerLine(t *testing.T) {
	var out bytes.Buffer
	show(t, NewJSONPrinter(&out), story, leaked)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(story)+1 {
		t.Fatalf("there are %d lines, want one per event and the summary:\n%s", len(lines), &out)
	}
	for i, event := range story {
		var got Event
		if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(event, got); diff != "" {
			t.Errorf("event %d (-want +got):\n%s", i, diff)
		}
	}
	want := `{"kind":"verdict","asExpected":true,"runs":[` +
		`{"gate":true,"volume":"vol-1","left":[],"featureGates":"HonorPVReclaimPolicy=true","volumesLeft":0,"expected":0,` +
		`"asExpected":true,"verdict":"HonorPVReclaimPolicy=true: 0 volumes left in the storage system"},` +
		`{"gate":false,"volume":"vol-1","left":["vol-1"],"featureGates":"HonorPVReclaimPolicy=false","volumesLeft":1,"expected":1,` +
		`"asExpected":true,"verdict":"HonorPVReclaimPolicy=false: 1 volume left behind in the storage system (vol-1): this is the leak"}]}`
	if diff := cmp.Diff(want, lines[len(story)]); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

func TestProgressPrintsTheResult(t *testing.T) {
	var out bytes.Buffer
	progress := Progress{Out: &out}
	broken := errors.New("broken")
	ctx, interrupt := context.WithCancel(t.Context())
	if err := progress.Do(ctx, "starting a", func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	fail := func(context.Context) error { return broken }
	if err := progress.Do(ctx, "starting b", fail); !errors.Is(err, broken) {
		t.Errorf("Do = %v, want %v", err, broken)
	}
	interrupt()
	if err := progress.Do(ctx, "starting c", fail); !errors.Is(err, broken) {
		t.Errorf("Do = %v, want %v", err, broken)
	}
	if want := "starting a ... 0.0 s\nstarting b ... failed\nstarting c ... stopped\n"; out.String() != want {
		t.Errorf("progress = %q, want %q", out.String(), want)
	}
}

// closedWriter is where nothing can be written to.
type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
