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
	flag.Parse()
	if err := run(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(root, out string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	out, err = filepath.Abs(out)
	if err != nil {
		return fmt.Errorf("find the folder to write to: %w", err)
	}
	result, err := generate(root, targets, defects)
	if err != nil {
		return err
	}
	if err := result.write(root, out); err != nil {
		return err
	}
	fmt.Printf("mutants: %d in %d files, of them %d defects by name\n", len(result.mutants), len(result.files), len(defects))
	return nil
}
