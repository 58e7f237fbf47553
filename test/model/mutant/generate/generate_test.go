package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

const lampFile = "pkg/lamp/lamp.go"

var (
	lampTargets = []target{{folder: "pkg/lamp"}}
	lampDefects = []defect{{"lamp-burns-for-ever", "a lit lamp is never switched off", []change{{lampFile, "s.Lit && (!s.Dark", "s.Lit && !ON && (!s.Dark"}}}}
)

func generateLamp(t *testing.T, defects []defect) (*result, error) {
	t.Helper()
	root, err := filepath.Abs("testdata/module")
	if err != nil {
		t.Fatal(err)
	}
	return generate(root, lampTargets, defects)
}

func TestMutantsOfLamp(t *testing.T) {
	result, err := generateLamp(t, lampDefects)
	if err != nil {
		t.Fatal(err)
	}
	var list strings.Builder
	for _, m := range result.mutants {
		list.WriteString(m.String() + "\n")
	}
	golden(t, "testdata/lamp.mutants.txt", []byte(list.String()))
	golden(t, "testdata/lamp.go.txt", result.files[lampFile])
	if again, err := generateLamp(t, lampDefects); err != nil || again.registry() != result.registry() {
		t.Errorf("a second run lists other mutants (%v)", err)
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs, compare and run with -update:\n%s", file, got)
	}
}

func TestMutatedTextHasAsManyLines(t *testing.T) {
	result, err := generateLamp(t, lampDefects)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/module/" + lampFile)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := bytes.Count(result.files[lampFile], []byte("\n")), bytes.Count(text, []byte("\n")); got != want {
		t.Errorf("the copy has %d lines, the file %d", got, want)
	}
}

func TestDefectThatNoLongerFitsIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change change
		want   string
	}{
		"text is gone":        {change{lampFile, "s.Cold", "s.Cold && !ON"}, "must occur once"},
		"text is there twice": {change{lampFile, "Wait", "SwitchOn"}, "must occur once"},
		"lines are added":     {change{lampFile, "s.Lit && (!s.Dark", "s.Lit &&\n !ON && (!s.Dark"}, "number of lines"},
		"file is not read":    {change{"pkg/other/other.go", "a", "b"}, "not among the packages"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := generateLamp(t, []defect{{"broken", "nothing", []change{tc.change}}})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestFunctionThatIsGoneIsRefused(t *testing.T) {
	root, err := filepath.Abs("testdata/module")
	if err != nil {
		t.Fatal(err)
	}
	_, err = generate(root, []target{{folder: "pkg/lamp", shell: true, functions: []string{"Decide", "Dim"}}}, nil)
	if err == nil || !strings.Contains(err.Error(), "no function Dim") {
		t.Errorf("error = %v, want one that names the function Dim", err)
	}
}
