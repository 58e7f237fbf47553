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

	"github.com/exeunt-io/exeunt/internal/model/mutant"
)

func main() {
	overlay := flag.String("overlay", "bin/mutants/overlay.json", "overlay `file` of the command generate")
	only := flag.String("packages", "", "`folders` to test, separated by commas; all mutated packages by default")
	match := flag.String("match", "", "run only mutants whose `text` has this in it, such as a file name or \"case removed\"")
	killed := flag.String("killed", "", "`file` with the mutants that the model kills, a line each; they are not run")
	explored := flag.String("explored", "", "`file` with what the model has explored; it begins the last line")
	workers := flag.Int("workers", 2, "tests that run at the same time")
	flag.Parse()
	r := &runner{overlay: *overlay, binaries: filepath.Join(filepath.Dir(*overlay), "tests"), workers: *workers, match: *match}
	if err := r.readKilled(*killed); err != nil {
		fmt.Fprintln(os.Stderr, "unittests:", err)
		os.Exit(1)
	}
	survivors, err := r.run(folders(*only))
	if err == nil && *explored != "" {
		err = r.report(*explored)
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
func (r *runner) report(explored string) error {
	text, err := os.ReadFile(explored)
	if err != nil {
		return fmt.Errorf("read what the model has explored: %w", err)
	}
	fmt.Printf("%s, %d of %d mutants killed\n", text, r.counts[byModel]+r.counts[killed], r.total())
	return nil
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
