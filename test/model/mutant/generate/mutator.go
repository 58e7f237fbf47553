package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/test/model/mutant"
)

// mutator collects the mutants of one file, and the edits of its text. No edit adds a line, so
// that errors and stack traces name the right one.
type mutator struct {
	fset    *token.FileSet
	pkg     *loaded
	file    *ast.File
	path    string
	text    []byte
	enums   *enums
	edits   []edit
	mutants []mutant.Mutant
	// function is the name of the function around the current place.
	function string
	// last is the ID of the last mutant.
	last int
}

// edit inserts text. Of two edits at one place, the edit at the end of an inner expression, or
// begins an outer one, comes first.
type edit struct {
	offset int
	closes bool
	order  int
	text   string
}

// add adds a mutant of the node.
func (m *mutator) add(operator string, node ast.Node, changed string) int {
	m.last++
	m.mutants = append(m.mutants, mutant.Mutant{
		ID: m.last, File: m.path, Line: m.fset.Position(node.Pos()).Line, Func: m.function,
		Operator: operator, Original: m.source(node), Changed: changed,
	})
	return m.last
}

// source returns the text of the node in one line.
func (m *mutator) source(node ast.Node) string {
	return strings.Join(strings.Fields(string(m.text[m.offset(node.Pos()):m.offset(node.End())])), " ")
}

func (m *mutator) offset(at token.Pos) int {
	return m.fset.Position(at).Offset
}

// wrap puts text before and after the node.
func (m *mutator) wrap(node ast.Node, before, after string) {
	m.insert(node.Pos(), before)
	m.edits = append(m.edits, edit{offset: m.offset(node.End()), closes: true, order: len(m.edits), text: after})
}

func (m *mutator) insert(at token.Pos, text string) {
	m.edits = append(m.edits, edit{offset: m.offset(at), order: len(m.edits), text: text})
}

func compareEdits(a, b edit) int {
	switch {
	case a.offset != b.offset:
		return a.offset - b.offset
	case a.closes != b.closes && a.closes:
		return -1
	case a.closes != b.closes:
		return 1
	case a.closes:
		return b.order - a.order
	}
	return a.order - b.order
}

// mutated returns the text with all edits.
func (m *mutator) mutated() []byte {
	edits := slices.Clone(m.edits)
	slices.SortFunc(edits, compareEdits)
	var text []byte
	from := 0
	for _, e := range edits {
		text = append(append(text, m.text[from:e.offset]...), e.text...)
		from = e.offset
	}
	return append(text, m.text[from:]...)
}

// hasDefect reports whether a defect by name changes the node.
func (m *mutator) hasDefect(node ast.Node) bool {
	return strings.Contains(m.source(node), "mutant.")
}

// isInserted reports whether a defect by name inserted the statement: gofmt never writes it in
// one line.
func (m *mutator) isInserted(node ast.Node) bool {
	return m.fset.Position(node.Pos()).Line == m.fset.Position(node.End()).Line && m.hasDefect(node)
}

// decisions mutates the decisions of a function.
func (m *mutator) decisions(body *ast.BlockStmt) {
	ast.Inspect(body, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.CaseClause:
			return !m.isInserted(n)
		case *ast.IfStmt:
			if m.isInserted(n) {
				return false
			}
			m.condition(n.Cond)
		case *ast.SwitchStmt:
			m.switchCases(n)
		case *ast.ReturnStmt:
			for _, result := range n.Results {
				m.result(result)
			}
		case *ast.AssignStmt:
			for _, value := range n.Rhs {
				m.assigned(value)
			}
		}
		return true
	})
}

func on(id int) string { return fmt.Sprintf("mutant.On(%d)", id) }

// isTrue and isFalse begin an expression that is true, or false, if the mutant is active. It
// ends in "))".
func isTrue(id int) string { return fmt.Sprintf("(mutant.True(%d, ", id) }

func isFalse(id int) string { return fmt.Sprintf("(mutant.False(%d, ", id) }
