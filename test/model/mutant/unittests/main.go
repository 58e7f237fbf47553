// Command unittests runs the unit tests of each mutated package with every mutant of the
// package, and prints which mutants the tests kill. It is compiled with the overlay of
// mutants, which names them.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/test/model/mutant"
)

func main() {
	overlay := flag.String("overlay", "bin/mutants/overlay.json", "overlay `file` of the command generate")
	module := flag.String("module", ".", "`folder` of the module of the packages")
	only := flag.String("packages", "", "`folders` to test, separated by commas; all mutated packages by default")
	match := flag.String("match", "",
		"run only mutants whose `text` has this in it, such as a file name or \"case removed\"")
	killed := flag.String("killed", "", "`file` with the mutants that the model kills, a line each; they are not run")
	explored := flag.String("explored", "", "`file` with what the model has explored; it begins the last line")
	add := flag.String("add", "", "`file` with the last line of another model, which is added to the last line")
	summary := flag.String("summary", "", "`file` to which the last line is written")
	workers := flag.Int("workers", 2, "tests that run at the same time")
	flag.Parse()
	r := &runner{overlay: *overlay, binaries: filepath.Join(filepath.Dir(*overlay), "tests"), workers: *workers,
		match: *match}
	if err := r.enter(*module); err != nil {
		fmt.Fprintln(os.Stderr, "unittests:", err)
		os.Exit(1)
	}
	if err := r.readKilled(*killed); err != nil {
		fmt.Fprintln(os.Stderr, "unittests:", err)
		os.Exit(1)
	}
	survivors, err := r.run(folders(*only))
	if err == nil && *explored != "" {
		err = r.report(*explored, *add, *summary)
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "unittests:", err)
		os.Exit(1)
	case survivors > 0:
		os.Exit(2)
	}
}

// report prints what the model has explored, and how many mutants were killed by any test.
func (r *runner) report(explored, add, summary string) error {
	text, err := os.ReadFile(explored)
	if err != nil {
		return fmt.Errorf("read what the model has explored: %w", err)
	}
	line := fmt.Sprintf("%s, %d of %d mutants killed", text, r.counts[byModel]+r.counts[killed], r.total())
	if add != "" {
		other, err := os.ReadFile(add)
		if err != nil {
			return fmt.Errorf("read the last line of the other model: %w", err)
		}
		if line, err = sum(line, string(other)); err != nil {
			return err
		}
	}
	fmt.Println(line)
	if summary != "" {
		if err := os.WriteFile(summary, []byte(line), 0o600); err != nil {
			return fmt.Errorf("write the last line: %w", err)
		}
	}
	return nil
}

// sum adds the numbers of the last lines of two models, under the name of the first.
func sum(line, other string) (string, error) {
	name, rest, _ := strings.Cut(line, ": ")
	_, more, _ := strings.Cut(other, ": ")
	a, err := mutant.ParseSummary(rest)
	if err != nil {
		return "", err
	}
	b, err := mutant.ParseSummary(more)
	if err != nil {
		return "", err
	}
	return name + ": " + a.Plus(b).String(), nil
}

// folders returns the folders of the list, by default all with mutants.
func folders(list string) []string {
	if list != "" {
		return strings.Split(list, ",")
	}
	var all []string
	for _, m := range mutant.All() {
		if folder := filepath.Dir(m.File); !slices.Contains(all, folder) {
			all = append(all, folder)
		}
	}
	slices.Sort(all)
	return all
}
