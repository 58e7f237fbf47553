package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommandIsRecordedWithColors(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	temporary := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(temporary, "mine"))
	out := filepath.Join(temporary, "it.cast")
	script := `echo "force=$CLICOLOR_FORCE no=$NO_COLOR in $TMPDIR/exeunt-77"`
	if err := record(out, []string{"/bin/sh", "-c", script}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) != 4 || !strings.Contains(lines[1], `"$ sh -c echo`) || !strings.HasSuffix(lines[2], `"force=1 no= in /tmp/exeunt-0\r\n"]`) {
		t.Errorf("the recording is\n%s", text)
	}
}

func TestNothingIsWrittenAfterAFailure(t *testing.T) {
	out := filepath.Join(t.TempDir(), "it.cast")
	for name, tc := range map[string]struct {
		out  string
		args []string
		want string
	}{
		"no file":           {"", []string{"/bin/true"}, "name the file and the command"},
		"no command":        {out, nil, "name the file and the command"},
		"the command fails": {out, []string{"/bin/sh", "-c", "echo a; exit 1"}, "exit status 1"},
		"a missing program": {out, []string{"/does/not/exist"}, "start /does/not/exist"},
		"a missing folder":  {"/does/not/exist/it.cast", []string{"/bin/echo", "a"}, "write recording"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := record(tc.out, tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("record = %v, want %s", err, tc.want)
			}
		})
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("a file was written: %v", err)
	}
}
