package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"slices"
	"strings"
)

// destructive are the actions that delete, give up or bind something: a swap prefers them.
var destructive = []string{
	"DeleteVolume", "Discard", "RemoveFinalizer", "ClearClaimRef", "SetPhaseReleased", "SetStatusLost", "BindFreeVolume",
	"UnprotectClaim", "UnprotectVolume", "UnprotectSnapshot", "RemoveEntry", "CallWithoutSecret", "CreateVolume", "FinishRecycling",
}

// result mutates a returned value.
func (m *mutator) result(e ast.Expr) {
	switch literal, is := e.(*ast.CompositeLit); {
	case is:
		m.fields(literal)
	default:
		m.assigned(e)
	}
}

// assigned mutates a boolean or an enum value.
func (m *mutator) assigned(e ast.Expr) {
	if _, literal := e.(*ast.FuncLit); literal {
		return
	}
	switch t := m.pkg.info.TypeOf(e); {
	case t == nil:
	case isBool(t):
		m.value(e)
	default:
		m.action(e, e)
	}
}

// fields mutates the boolean and enum fields of a struct.
func (m *mutator) fields(literal *ast.CompositeLit) {
	for _, element := range literal.Elts {
		value := element
		if pair, keyed := element.(*ast.KeyValueExpr); keyed {
			value = pair.Value
		}
		switch t := m.pkg.info.TypeOf(value); {
		case isBool(t):
			m.field(value)
		default:
			m.action(value, literal)
		}
	}
}

// action swaps an action, or any other enum value, for others. The mutant shows the whole
// value that the action is part of.
func (m *mutator) action(e ast.Expr, whole ast.Node) {
	values := m.enums.of(m.pkg.info.TypeOf(e))
	if values == nil || m.hasDefect(e) {
		return
	}
	current := -1
	if value := m.pkg.info.Types[e].Value; value != nil {
		current = slices.IndexFunc(values, func(c *types.Const) bool { return constant.Compare(c.Val(), eql, value) })
	}
	for _, other := range m.others(values, current) {
		name := m.qualified(other)
		if name != "" {
			m.wrap(e, fmt.Sprintf("mutant.Choose(%d, %s, ", m.add("action swapped", whole, name), name), ")")
		}
	}
}

// others returns at most two values to swap a value for: no action, the next destructive
// action, the next value.
func (m *mutator) others(values []*types.Const, current int) []*types.Const {
	isAction := strings.HasSuffix(types.TypeString(values[0].Type(), func(*types.Package) string { return "" }), "Action")
	var others []*types.Const
	add := func(i int) {
		if i >= 0 && i != current && len(others) < 2 && !slices.Contains(others, values[i]) {
			others = append(others, values[i])
		}
	}
	if isAction {
		add(0)
	}
	for _, name := range destructive {
		add(slices.IndexFunc(values, func(c *types.Const) bool { return c.Name() == name }))
	}
	if current >= 0 {
		add((current + 1) % len(values))
		add((current + len(values) - 1) % len(values))
	}
	return others
}

// qualified returns the name of the constant in this file, "" if its package is not imported.
func (m *mutator) qualified(c *types.Const) string {
	if c.Pkg() == m.pkg.types || c.Pkg().Path() == m.pkg.path {
		return c.Name()
	}
	for _, spec := range m.file.Imports {
		if strings.Trim(spec.Path.Value, `"`) != c.Pkg().Path() {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name + "." + c.Name()
		}
		return c.Pkg().Name() + "." + c.Name()
	}
	return ""
}
