package asciicast

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRecordingBeginsWithTheCommand(t *testing.T) {
	var out bytes.Buffer
	lines := []Line{{1234567 * time.Microsecond, "\x1b[1mPV → <gone>\x1b[0m"}, {1300 * time.Millisecond, ""}}
	if err := Write(&out, "exeunt demo", lines); err != nil {
		t.Fatal(err)
	}
	want := `{"version":2,"width":80,"height":36,"title":"exeunt demo"}
[0,"o","$ exeunt demo\r\n"]
[1.235,"o","\u001b[1mPV → <gone>\u001b[0m\r\n"]
[1.3,"o","\r\n"]
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("recording (-want +got):\n%s", diff)
	}
}

func TestTerminalIsAsWideAsTheLongestLine(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want int
	}{
		"short lines":           {"a", 80},
		"characters, not bytes": {strings.Repeat("→", 81), 81},
		"colors have no width":  {"\x1b[31m" + strings.Repeat("a", 90) + "\x1b[0m", 90},
	} {
		t.Run(name, func(t *testing.T) {
			if got := width([]Line{{Text: tc.text}, {Text: "b"}}); got != tc.want {
				t.Errorf("width = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestLongPausesAreShortened(t *testing.T) {
	lines := []Line{{10 * time.Second, "first"}, {12 * time.Second, "soon"}, {20 * time.Second, "late"}, {21 * time.Second, "last"}}
	want := []Line{{3 * time.Second, "first"}, {5 * time.Second, "soon"}, {8 * time.Second, "late"}, {9 * time.Second, "last"}}
	if diff := cmp.Diff(want, shortenPauses(lines)); diff != "" {
		t.Errorf("shortened (-want +got):\n%s", diff)
	}
}

func TestNamesOfTheRunAreReplaced(t *testing.T) {
	names := NewAnonymizer(map[string]string{"/home/me": "~", "/home/me/src": ".", "/var/tmp": "/tmp", "": "x", "/": "y"})
	for _, tc := range []struct{ name, text, want string }{
		{"directory", "in /home/me/src/bin and /home/me/.kube", "in ./bin and ~/.kube"},
		{"temporary directory", "/var/tmp/exeunt-1234567890/audit.log", "/tmp/exeunt-0/audit.log"},
		{"port", "https://127.0.0.1:38271, localhost:1", "https://127.0.0.1:0, localhost:0"},
		{"shortened name", "PV pvc-73bee702", "PV pvc-00000001"},
		{"UID of the name", "73bee702-1111-4222-8333-123456789abc", "00000001-0000-0000-0000-000000000000"},
		{"whole name", "PV pvc-73bee702-1111-4222-8333-123456789abc.", "PV pvc-00000001-0000-0000-0000-000000000000."},
		{"volume handle", "DeleteVolume vol-000001-5e874db4 → OK", "DeleteVolume vol-000001-00000002 → OK"},
		{"same name again", "vol-000001-5e874db4, pvc-73bee702", "vol-000001-00000002, pvc-00000001"},
		{"plain text", "12.345  1 → 0  exeunt-mock, 12345678 of 1.2.3.4:5", "12.345  1 → 0  exeunt-mock, 12345678 of 1.2.3.4:5"},
	} { // in order: the replacements count up
		if got := names.Replace(tc.text); got != tc.want {
			t.Errorf("%s: Replace(%q) = %q, want %q", tc.name, tc.text, got, tc.want)
		}
	}
}

func TestCaptureReturnsLinesInOrderOfTime(t *testing.T) {
	lines, err := Capture(exec.CommandContext(t.Context(), "/bin/sh", "-c", "echo first; echo; printf last"))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	var before time.Duration
	for _, line := range lines {
		texts = append(texts, line.Text)
		if line.At < before || line.At <= 0 {
			t.Errorf("line %q at %s, after one at %s", line.Text, line.At, before)
		}
		before = line.At
	}
	if diff := cmp.Diff([]string{"first", "", "last"}, texts); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestFailedCommandIsNotRecorded(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"it fails":          {"echo a; exit 3", "record /bin/sh: exit status 3"},
		"it prints nothing": {"true", "record /bin/sh: the command printed nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			lines, err := Capture(exec.CommandContext(t.Context(), "/bin/sh", "-c", tc.script))
			if err == nil || err.Error() != tc.want || lines != nil {
				t.Errorf("Capture = %v, %v, want %s", lines, err, tc.want)
			}
		})
	}
	if _, err := Capture(exec.CommandContext(t.Context(), "/does/not/exist")); err == nil || !strings.HasPrefix(err.Error(), "start /does/not/exist: ") {
		t.Errorf("Capture of no program: %v", err)
	}
}

func TestOutputErrorsAreReported(t *testing.T) {
	if err := Write(closedWriter{}, "a", nil); err == nil || !strings.HasPrefix(err.Error(), "write header: ") {
		t.Errorf("Write = %v", err)
	}
}

// closedWriter is where nothing can be written to.
type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
