package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/printers"
)

// Printer shows a demo. Its errors are errors of the output.
type Printer interface {
	// Begin announces a run with the gate on or off.
	Begin(gate bool) error
	// Event shows a line of the timeline.
	Event(event Event) error
	// End shows the result of a run.
	End(outcome Outcome) error
	// Summarize compares the runs. It is called last.
	Summarize(outcomes []Outcome) error
}

// NewTextPrinter returns a printer for people, with color or without.
func NewTextPrinter(out io.Writer, colored bool) Printer {
	return &textPrinter{out: out, paint: newPaint(colored), pause: func(time.Duration) {}}
}

// textPrinter prints a table line by line.
type textPrinter struct {
	out   io.Writer
	paint paint
	// pause waits before a line.
	pause func(time.Duration)
	// volumes is the number of volumes in the previous line.
	volumes int
	// checking: a check was printed. After it only checks and calls of the driver are
	// printed.
	checking bool
}

func (p *textPrinter) Begin(gate bool) error {
	p.volumes, p.checking = 0, false
	return p.print("",
		p.paint(bold, gateName(gate)+": the PV is deleted before its PVC"),
		"",
		p.paint(dim, "SECONDS  STORED  WHO            WHAT    (STORED: volumes in the storage system)"))
}

func (p *textPrinter) Event(event Event) error {
	p.checking = p.checking || event.Kind == kindCheck
	if event.Told || p.checking && event.Kind != kindCheck && event.Kind != kindCall {
		return nil
	}
	if event.Kind == kindStep || event.Kind == kindCheck {
		p.pause(stepPause)
		return p.print("", p.line(event))
	}
	p.pause(linePause)
	return p.print(p.line(event))
}

// line returns the line of an event.
func (p *textPrinter) line(event Event) string {
	stored := fmt.Sprintf("%6d", event.Volumes)
	if event.Volumes != p.volumes {
		stored = p.paint(bold, fmt.Sprintf("%6s", fmt.Sprintf("%d → %d", p.volumes, event.Volumes)))
	}
	p.volumes = event.Volumes
	return strings.Join([]string{
		p.paint(dim, fmt.Sprintf("%7.3f", event.Seconds)),
		stored,
		p.paint(colors[event.Who], fmt.Sprintf("%-13s", event.Who)),
		p.paint(p.colorOf(event), event.What),
	}, "  ")
}

// colorOf returns the color of an event's text.
func (p *textPrinter) colorOf(event Event) color {
	switch {
	case event.Kind == kindStep || event.Kind == kindCheck:
		return bold
	case event.Kind == kindNote:
		return cyan
	case event.Kind == kindWrite && strings.HasPrefix(event.Code, "2"):
		return ""
	case event.Kind == kindWrite:
		return red
	}
	return colors[event.Who]
}

func (p *textPrinter) End(outcome Outcome) error {
	verdict := p.paint(p.colorOfOutcome(outcome), outcome.Verdict())
	if why := outcome.Why(); why != "" {
		return p.print("", verdict, why)
	}
	return p.print("", verdict)
}

// colorOfOutcome returns green for a reclaimed volume, yellow for the expected leak, and
// red for an unexpected outcome.
func (p *textPrinter) colorOfOutcome(outcome Outcome) color {
	switch {
	case !outcome.AsExpected():
		return red
	case outcome.Gate:
		return green
	}
	return yellow
}

func (p *textPrinter) Summarize(outcomes []Outcome) error {
	if err := p.print(""); err != nil {
		return err
	}
	table := printers.GetNewTabWriter(p.out)
	fmt.Fprintln(table, "RUN\tVOLUMES LEFT\tEXPECTED\tRESULT")
	for _, outcome := range outcomes {
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", gateName(outcome.Gate), len(outcome.Left), len(outcome.Expected()),
			result(outcome))
	}
	return table.Flush()
}

// result is an outcome in a word or two.
func result(outcome Outcome) string {
	switch {
	case !outcome.AsExpected():
		return "NOT AS EXPECTED"
	case outcome.Gate:
		return "reclaimed"
	}
	return "leaked"
}

// print writes lines.
func (p *textPrinter) print(lines ...string) error {
	_, err := io.WriteString(p.out, strings.Join(lines, "\n")+"\n")
	return err
}

// NewJSONPrinter returns a printer for programs: one object per line for each
// event, and a last one with the verdicts.
func NewJSONPrinter(out io.Writer) Printer {
	return jsonPrinter{json.NewEncoder(out)}
}

// jsonPrinter prints lines of JSON.
type jsonPrinter struct{ encoder *json.Encoder }

func (jsonPrinter) Begin(bool) error { return nil }

func (p jsonPrinter) Event(event Event) error { return p.encoder.Encode(event) }

func (jsonPrinter) End(Outcome) error { return nil }

func (p jsonPrinter) Summarize(outcomes []Outcome) error {
	return p.encoder.Encode(newSummary(outcomes))
}

// summary is the last JSON object of a demo.
type summary struct {
	Kind       string       `json:"kind"`
	AsExpected bool         `json:"asExpected"`
	Runs       []runSummary `json:"runs"`
}

// runSummary is the part of a summary about one run.
type runSummary struct {
	Outcome
	Gates       string `json:"featureGates"`
	VolumesLeft int    `json:"volumesLeft"`
	Expected    int    `json:"expected"`
	AsExpected  bool   `json:"asExpected"`
	Verdict     string `json:"verdict"`
}

// newSummary returns the summary of outcomes.
func newSummary(outcomes []Outcome) summary {
	all := summary{Kind: "verdict", AsExpected: unexpected(outcomes) == nil}
	for _, outcome := range outcomes {
		all.Runs = append(all.Runs, runSummary{
			Outcome:     outcome,
			Gates:       gateName(outcome.Gate),
			VolumesLeft: len(outcome.Left),
			Expected:    len(outcome.Expected()),
			AsExpected:  outcome.AsExpected(),
			Verdict:     outcome.Verdict(),
		})
	}
	return all
}

// color is an SGR parameter of ECMA-48.
type color string

const (
	bold   color = "1"
	dim    color = "2"
	red    color = "31"
	green  color = "32"
	yellow color = "33"
	cyan   color = "36"
)

// colors are the colors of the actors; all other actors have none.
var colors = map[string]color{
	you:       bold,
	csiDriver: yellow,
	watched:   dim,
}

// paint returns the text in a color, or unchanged.
type paint func(c color, text string) string

// newPaint returns a paint that uses colors if colored is true.
func newPaint(colored bool) paint {
	if !colored {
		return func(_ color, text string) string { return text }
	}
	return func(c color, text string) string {
		if c == "" || text == "" {
			return text
		}
		return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
	}
}

// kind is the source of an event.
type kind string

const (
	// kindStep: the demo, as an administrator, is about to do something.
	kindStep kind = "step"
	// kindCheck: a step that only confirms the verdict.
	kindCheck kind = "check"
	// kindNote: the result of a step.
	kindNote kind = "note"
	// kindWrite: a write of a volume or claim, from the API server's audit log.
	kindWrite kind = "write"
	// kindCall: a call that creates or deletes a volume, from the driver's call log.
	kindCall kind = "call"
	// kindState: the new state of a volume or claim, from a watch.
	kindState kind = "state"
)

// Event is one line of the timeline.
type Event struct {
	Kind kind `json:"kind"`
	// Gate is HonorPVReclaimPolicy in the run that the event belongs to.
	Gate bool `json:"gate"`
	// Time is when the event happened, Seconds the time since the run began.
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"`
	// Who is the actor: "you", a program, or the full name of another user.
	Who string `json:"who"`
	// What is the event in words.
	What string `json:"what"`
	// Volumes is the number of volumes in the storage system at that time.
	Volumes int `json:"volumes"`
	// Verb is the verb of the API request, or the method of the CSI call.
	Verb string `json:"verb,omitempty"`
	// Object is resource/name[/subresource] of an API object, or the handle of a volume in
	// the storage system.
	Object string `json:"object,omitempty"`
	// Code is the HTTP status, or the name of the gRPC code.
	Code string `json:"code,omitempty"`
	// Phase, Deleting, Finalizers and Gone describe a state. Gone: the object was deleted
	// from the API.
	Phase      string   `json:"phase,omitempty"`
	Deleting   bool     `json:"deleting,omitempty"`
	Finalizers []string `json:"finalizers,omitempty"`
	Gone       bool     `json:"gone,omitempty"`
	// Told: a write on the timeline says all about this state.
	Told bool `json:"told,omitempty"`

	// After is the object that a write returned, if it is known.
	After *unstructured.Unstructured `json:"-"`
	// UID and Version are those of the object of a state.
	UID     types.UID `json:"-"`
	Version string    `json:"-"`
}
