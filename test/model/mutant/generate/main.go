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
	set := flag.String("set", "storage", "the `programs` whose packages are mutated: storage, garbage, nodes, teardown, window, graceful or apiserver")
	flag.Parse()
	if err := run(*root, *out, *set); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// mutated are packages that are mutated together.
type mutated struct {
	// module is the folder of their module, "" for the main one.
	module  string
	targets []target
	defects []defect
}

// sets are the packages that are mutated together, by the name of their model or program.
var sets = map[string]mutated{
	"storage":   {"", targets, defects},
	"garbage":   {"", garbageTargets, garbageDefects},
	"nodes":     {"", nodesTargets, nil},
	"teardown":  {"", teardownTargets, teardownDefects},
	"window":    {"", windowTargets, nil},
	"graceful":  {"pkg/graceful", gracefulTargets, nil},
	"apiserver": {"cmd/kube-apiserver", apiserverTargets, nil},
}

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
	result, err := generate(filepath.Join(root, chosen.module), chosen.targets, chosen.defects)
	if err != nil {
		return err
	}
	if err := result.write(root, chosen.module, out); err != nil {
		return err
	}
	fmt.Printf("mutants: %d in %d files, of them %d defects by name\n", len(result.mutants), len(result.files), len(chosen.defects))
	return nil
}
