// The program proof writes the numbers of "make model" into the tables of docs/proof.md. The text
// of the tables stays as it is, so a row that no result has, and a result that no row has, are named.
//
//	make model > bin/model.out 2> bin/model.err
//	go run ./test/model/proof bin/model.out bin/model.err
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

const page = "docs/proof.md"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "proof:", err)
		os.Exit(1)
	}
}

func run(files []string) error {
	if len(files) == 0 {
		return errors.New("no file with the output of make model: give its files as arguments")
	}
	var outputs []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		outputs = append(outputs, string(text))
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return fmt.Errorf("%w: run this program in the root of the repository", err)
	}
	r := read(strings.Join(outputs, "\n"))
	changed := r.update(string(text))
	for _, name := range r.missing {
		fmt.Println("no result for the row:", name)
	}
	for _, name := range r.unused() {
		fmt.Println("no row for the result:", name)
	}
	return os.WriteFile(page, []byte(changed), 0o600)
}
