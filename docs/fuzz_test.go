package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`)
	// input is a parser, or a function from API objects to a state.
	input   = regexp.MustCompile(`(?m)^func (\(\w+ \*?\w+\) )?([Pp]arse|[Dd]ecode|Unmarshal)\w*\(|^func (\(\w+ \*?\w+\) )?(stateOf|observe|\w*State)\([^)]*\) (\*?observation|\w+\.\w*State\b)`)
	fuzzRow = regexp.MustCompile("(?m)^\\| `([\\w/-]+)` \\| `(Fuzz\\w+)` \\|")
)

// goFiles calls visit for each Go file of the programs and packages, with its folder.
func goFiles(t *testing.T, visit func(folder, name, text string)) {
	t.Helper()
	for _, root := range []string{"cmd", "internal", "pkg"} {
		err := fs.WalkDir(os.DirFS(".."), root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			text, err := os.ReadFile(filepath.Join("..", path))
			visit(filepath.ToSlash(filepath.Dir(path)), filepath.Base(path), string(text))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// unfuzzed are packages without a fuzz target of their own, with the reason.
var unfuzzed = map[string]string{
	"internal/boundpairs":                "reads only what it wrote",
	"internal/model":                     "reads only keys that it wrote",
	"internal/model/mutant/generate":     "go/parser reads the files of this repository",
	"internal/model/server":              "reads only what the model writes",
	"pkg/controller/partial/partialtest": "reads what tests encode; pkg/controller/partial fuzzes the decoder",
	"pkg/controller/waiting":             "the state comes from memory and clock",
	"pkg/garbagecollector":               "the state of a cycle is four booleans of the graph; internal/model/garbage explores them",
	"pkg/why/api/schema":                 "the converter of apimachinery reads the definition",
	"pkg/why/printer":                    "a comparison with five words",
	"pkg/why/storage":                    "the state is read live; pkg/status and pkg/blocker fuzz its parts",
}

func TestEveryInputHasAFuzzTarget(t *testing.T) {
	fuzzed, inputs := map[string]bool{}, map[string]bool{}
	goFiles(t, func(folder, name, text string) {
		if strings.HasSuffix(name, "_test.go") {
			fuzzed[folder] = fuzzed[folder] || fuzzTarget.MatchString(text)
			return
		}
		inputs[folder] = inputs[folder] || input.MatchString(text)
	})
	for folder, reads := range inputs {
		if _, excused := unfuzzed[folder]; reads && !fuzzed[folder] && !excused {
			t.Errorf("%s has a parser or a state, and no fuzz target", folder)
		}
	}
	if !inputs["pkg/journal"] || !inputs["pkg/provisioner/deletion"] {
		t.Error("the parser of pkg/journal or the state of pkg/provisioner/deletion was not found")
	}
}

func TestCorporaAreSmall(t *testing.T) {
	const largest, all = 10_000, 300_000
	total := 0
	for _, root := range []string{"cmd", "internal", "pkg"} {
		err := fs.WalkDir(os.DirFS(".."), root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.Contains(path, "/testdata/fuzz/") {
				return err
			}
			text, err := os.ReadFile(filepath.Join("..", path))
			if total += len(text); len(text) > largest {
				t.Errorf("%s has %d bytes", path, len(text))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if total == 0 || total > all {
		t.Errorf("the corpora have %d bytes, want 1 to %d", total, all)
	}
}

func TestFuzzTargetsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("architecture/fuzz.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, found []string
	for _, row := range fuzzRow.FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, row[1]+" "+row[2])
	}
	goFiles(t, func(folder, _, text string) {
		for _, target := range fuzzTarget.FindAllStringSubmatch(text, -1) {
			found = append(found, folder+" "+target[1])
		}
	})
	slices.Sort(found)
	if diff := cmp.Diff(found, documented); diff != "" {
		t.Errorf("targets in the code (-) and sorted in architecture/fuzz.md (+):\n%s", diff)
	}
}
