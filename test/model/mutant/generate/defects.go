package main

import (
	"fmt"
	"strings"

	"github.com/exeunt-io/exeunt/test/model/mutant"
)

// defect is a defect that was mended, or a guard that upstream lacks, put back by name.
type defect struct {
	name string
	// what says what goes wrong, in a few words.
	what    string
	changes []change
}

// change replaces a text that occurs once in the file by another one with as many lines. In
// the new text, ON is whether the defect is active, and CHOOSE(a, b) is a if so, otherwise b.
type change struct {
	file, before, after string
}

// inserter puts the defects into the texts of files.
type inserter struct {
	defects []defect
	mutants []mutant.Mutant
	changed map[string]bool
}

// insert returns the text of the file with its defects.
func (n *inserter) insert(path string, text []byte, module string) ([]byte, error) {
	changed := string(text)
	for i, d := range n.defects {
		for _, c := range d.changes {
			if c.file != path {
				continue
			}
			if strings.Count(string(text), c.before) != 1 || strings.Count(changed, c.before) != 1 {
				return nil, fmt.Errorf("the defect %s does not fit %s, where this text must occur once: %s", d.name, path, c.before)
			}
			if strings.Count(c.before, "\n") != strings.Count(c.after, "\n") {
				return nil, fmt.Errorf("the defect %s changes the number of lines of %s", d.name, path)
			}
			changed = strings.Replace(changed, c.before, expand(c.after, i+1), 1)
			if c == d.changes[0] {
				n.mutants[i] = mutantOf(d, i+1, string(text))
			}
		}
	}
	if changed != string(text) {
		n.changed[path] = true
		changed = withImport(changed, module)
	}
	return []byte(changed), nil
}

func expand(text string, id int) string {
	return strings.NewReplacer("ON", on(id), "CHOOSE(", fmt.Sprintf("mutant.Choose(%d, ", id)).Replace(text)
}

func mutantOf(d defect, id int, text string) mutant.Mutant {
	first := d.changes[0]
	at := strings.Index(text, first.before)
	return mutant.Mutant{
		ID: id, Name: d.name, File: first.file, Line: 1 + strings.Count(text[:at], "\n"), Func: functionAt(text, at),
		Operator: "defect", Original: strings.Join(strings.Fields(first.before), " "), Changed: d.what,
	}
}

// check returns an error if a file of a defect was not read.
func (n *inserter) check() error {
	for _, d := range n.defects {
		for _, c := range d.changes {
			if !n.changed[c.file] {
				return fmt.Errorf("the defect %s is for %s, which is not among the packages to mutate", d.name, c.file)
			}
		}
	}
	return nil
}

// functionAt returns the name of the function around the place.
func functionAt(text string, at int) string {
	start := strings.LastIndex(text[:at], "\nfunc ")
	if strings.HasPrefix(text[at:], "func ") {
		start = at - 1
	}
	name := text[start+len("\nfunc "):]
	if strings.HasPrefix(name, "(") {
		name = name[strings.Index(name, ")")+2:]
	}
	return name[:strings.IndexAny(name, "([")]
}

// withImport adds an import of package mutant, in the line of the package clause.
func withImport(text, module string) string {
	start := strings.Index("\n"+text, "\npackage ")
	end := start + strings.Index(text[start:], "\n")
	return text[:end] + importOf(module) + text[end:]
}
