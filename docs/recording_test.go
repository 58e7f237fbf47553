package docs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/exeunt-io/exeunt/internal/demo"
)

// recording is a file in the format asciicast v2.
type recording struct {
	Version, Width, Height int
	// seconds and texts are those of its frames.
	seconds []float64
	texts   []string
}

// readRecording reads docs/demo.cast: a header, and lines [seconds, "o", text].
func readRecording(t *testing.T) recording {
	t.Helper()
	file, err := os.ReadFile("demo.cast")
	if err != nil {
		t.Fatal(err)
	}
	if len(file) > 40_000 {
		t.Errorf("the recording has %d bytes, want at most 40000", len(file))
	}
	head, rest, _ := strings.Cut(string(file), "\n")
	var read recording
	if err := json.Unmarshal([]byte(head), &read); err != nil {
		t.Fatalf("header %s: %v", head, err)
	}
	for line := range strings.Lines(rest) {
		var frame []any
		if err := json.Unmarshal([]byte(line), &frame); err != nil || len(frame) != 3 {
			t.Fatalf("%s: %d values, error %v; want 3", line, len(frame), err)
		}
		seconds, isNumber := frame[0].(float64)
		text, isText := frame[2].(string)
		if !isNumber || frame[1] != "o" || !isText {
			t.Fatalf("%s: want a number, \"o\" and a text", line)
		}
		read.seconds, read.texts = append(read.seconds, seconds), append(read.texts, text)
	}
	return read
}

// style matches the escape sequences that set colors.
var style = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestRecordingIsAsciicast(t *testing.T) {
	read := readRecording(t)
	if read.Version != 2 || read.Width < 1 || read.Height < 1 || len(read.texts) == 0 {
		t.Fatalf("version %d, %d times %d characters, %d frames; want version 2 and a terminal", read.Version, read.Width, read.Height, len(read.texts))
	}
	before := 0.0
	for i, text := range read.texts {
		if pause := read.seconds[i] - before; pause < 0 || pause > 5 {
			t.Errorf("frame %d comes %.3f seconds after the one before, want from 0 to 5", i, pause)
		}
		before = read.seconds[i]
		if plain, ended := strings.CutSuffix(style.ReplaceAllString(text, ""), "\r\n"); !ended || utf8.RuneCountInString(plain) > read.Width {
			t.Errorf("frame %d does not end a line of at most %d characters: %q", i, read.Width, text)
		}
	}
	if first := read.texts[0]; first != "$ exeunt demo --slow\r\n" {
		t.Errorf("the first frame is %q, want the command", first)
	}
}

// printed returns what the demo prints, with colors, before and after the timelines of two runs.
func printed(t *testing.T, outcomes []demo.Outcome) []string {
	t.Helper()
	var out bytes.Buffer
	var parts []string
	printer := demo.NewTextPrinter(&out, true)
	part := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, strings.ReplaceAll(out.String(), "\n", "\r\n"))
		out.Reset()
	}
	for _, outcome := range outcomes {
		part(printer.Begin(outcome.Gate))
		part(printer.End(outcome))
	}
	part(printer.Summarize(outcomes))
	return parts
}

var leaked = regexp.MustCompile(`storage system \((vol-[^)]*)\)`)

func TestRecordingSaysWhatTheDemoSays(t *testing.T) {
	text := strings.Join(readRecording(t).texts, "")
	found := leaked.FindStringSubmatch(text)
	if found == nil {
		t.Fatal("the recording names no volume that leaked")
	}
	handle := found[1]
	for _, want := range printed(t, []demo.Outcome{{Gate: true}, {Gate: false, Volume: handle, Left: []string{handle}}}) {
		before, after, is := strings.Cut(text, want)
		if !is {
			t.Fatalf("`make recording` is due: the demo says %q, the rest of the recording is\n%s", want, text)
		}
		if before != "" && !strings.Contains(before, "kubectl delete pv") && !strings.Contains(before, "$ exeunt demo") {
			t.Errorf("there is no deletion before %q, but %q", want, before)
		}
		text = after
	}
	if text != "" {
		t.Errorf("the recording ends with %q, want the table", text)
	}
}

var (
	absolute = regexp.MustCompile(`(?:^|[^\w.])/\w`)
	partUID  = regexp.MustCompile(`(?:pvc-|vol-\d{6}-)([0-9a-f]{8})`)
	address  = regexp.MustCompile(`(?:127\.0\.0\.1|localhost):[1-9]`)
)

// The recording is the same on each machine, but for the times.
func TestRecordingSaysNothingOfItsMachine(t *testing.T) {
	names := 0
	for i, text := range readRecording(t).texts {
		text = style.ReplaceAllString(text, "")
		if absolute.MatchString(text) || address.MatchString(text) {
			t.Errorf("frame %d has a path or port of the machine: %q", i, text)
		}
		for _, found := range partUID.FindAllStringSubmatch(text, -1) {
			if names++; !strings.HasPrefix(found[1], "000000") {
				t.Errorf("frame %d has the random name %s: %q", i, found[0], text)
			}
		}
	}
	if names == 0 {
		t.Error("the recording names no volume")
	}
}
