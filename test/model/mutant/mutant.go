// Package mutant selects one of the mutants of a program: small changes of its decisions and
// guards, all compiled into one binary. The model must find what each of them breaks.
//
// A normal build has no mutants. The command in the folder generate writes mutated copies of
// source files, and an overlay with which "go build" and "go test" compile the copies.
package mutant

import (
	"fmt"
	"reflect"
)

// Mutant is one change of the source code.
type Mutant struct {
	// ID selects the mutant; 0 is no mutant.
	ID int
	// Name is the name of a defect that was mended and is put back, "" for other mutants.
	Name string
	// File and Line are the place of the change, Func the function around it.
	File string
	Line int
	Func string
	// Operator is the kind of change.
	Operator string
	// Original is the text before the change, Changed what takes its place.
	Original, Changed string
}

var (
	all    []Mutant
	active int
	// record is called with the ID of every mutant whose place is evaluated; nil for no record.
	record func(id int, differs bool)
	// compares: the record needs to know whether values differ, which takes time.
	compares bool
	// suspended: no mutant is active, and nothing is recorded.
	suspended bool
)

// All returns the mutants of this binary, by ascending ID.
func All() []Mutant { return all }

// Select activates the mutant, and none for 0.
func Select(id int) { active = id }

// Record has f called with the ID of a mutant whenever its place is evaluated; nil ends that. Differs:
// the mutant would have another value there. A run without a mutant shows which mutants can make a
// difference at all.
func Record(f func(id int, differs bool)) { record, compares = f, f != nil }

// Suspend switches the selected mutant off, and returns a function that switches it on again. The
// model suspends the mutant while it works itself: the judge must not have the defect, too.
func Suspend() (resume func()) { return suspend(true) }

// Resume switches the selected mutant on while a program works, and returns a function that
// restores what was before.
func Resume() (restore func()) { return suspend(false) }

func suspend(off bool) (restore func()) {
	if active == 0 && record == nil { // explorations without mutants run at the same time
		return func() {}
	}
	before := suspended
	suspended = off
	return func() { suspended = before }
}

// On reports whether the mutant is active. It always makes a difference where On is called.
func On(id int) bool { return isOn(id, true) }

// True returns true if the mutant is active, otherwise the original.
func True(id int, original bool) bool { return isOn(id, !original) || original }

// False returns false if the mutant is active, otherwise the original.
func False(id int, original bool) bool { return !isOn(id, original) && original }

// Choose returns changed if the mutant is active, otherwise original.
func Choose[T any](id int, changed, original T) T {
	if isOn(id, compares && !reflect.DeepEqual(changed, original)) {
		return changed
	}
	return original
}

func isOn(id int, differs bool) bool {
	if suspended {
		return false
	}
	if record != nil {
		record(id, differs)
	}
	return id == active
}

// String returns the mutant in one line.
func (m Mutant) String() string {
	return fmt.Sprintf("%s:%d %s", m.File, m.Line, m.change())
}

// Key identifies the mutant in tables, and stays equal when lines move.
func (m Mutant) Key() string {
	return m.File + " " + m.change()
}

func (m Mutant) change() string {
	if m.Name != "" {
		return fmt.Sprintf("%s: %s, %s", m.Func, m.Name, m.Changed)
	}
	return fmt.Sprintf("%s: %s: %s becomes %s", m.Func, m.Operator, m.Original, m.Changed)
}
