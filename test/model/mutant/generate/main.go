// Command generate writes mutants of the programs: copies of source files in which each
// decision and each guard can be changed when the program runs, and an overlay for the go
// command that compiles the copies in place of the files.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "`folder` of the module")
	out := flag.String("out", "bin/mutants", "`folder` to write the copies and overlay.json to")
	set := flag.String("set", "storage", "the `programs` whose packages are mutated: storage or garbage")
	flag.Parse()
	if err := run(*root, *out, *set); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// sets are the packages that are mutated together, by the name of their model.
var sets = map[string]struct {
	targets []target
	defects []defect
}{"storage": {targets, defects}, "garbage": {garbageTargets, garbageDefects}}

func run(root, out, set string) error {
	chosen, known := sets[set]
	if !known {
		return fmt.Errorf("there are no packages of the name %q to mutate", set)
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	out, err = filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("find the folder to write to: %w", err)
	}
	result, err := generate(root, chosen.targets, chosen.defects)
	if err != nil {
		return err
	}
	if err := result.write(root, out); err != nil {
		return err
	}
	fmt.Printf("mutants: %d in %d files, of them %d defects by name\n", len(result.mutants), len(result.files), len(chosen.defects))
	return nil
}
