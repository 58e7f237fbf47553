package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// guard is a function that makes a write or a decision safe.
type guard struct {
	operator string
	// unless: the copy calls another function, whose first argument is whether the guard is
	// left out.
	unless bool
}

// guards are the functions by their full names, without the name of the module.
var guards = map[string]guard{
	"(*pkg/patch.Patch).Test":            {operator: "test left out", unless: true},
	"pkg/patch.For":                      {operator: "test of the UID left out", unless: true},
	"pkg/patch.ForVersion":               {operator: "test of the version left out", unless: true},
	"pkg/controller.RequirePhase":        {operator: "test of the phase left out", unless: true},
	"pkg/controller.LiveVolume":          {operator: "live read left out", unless: true},
	"pkg/controller.LiveClaim":           {operator: "live read left out", unless: true},
	"(*pkg/controller.Versions).IsFresh": {operator: "stale cache accepted"},
}

// span is a part of the text.
type span struct{ pos, end token.Pos }

// Pos returns the begin of the part.
func (s span) Pos() token.Pos { return s.pos }

// End returns the end of the part.
func (s span) End() token.Pos { return s.end }

// guardCalls leaves out the guards below the node, one by one.
func (m *mutator) guardCalls(node ast.Node) {
	ast.Inspect(node, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.CallExpr:
			m.guardCall(n)
		case *ast.KeyValueExpr:
			if key, is := n.Key.(*ast.Ident); is && key.Name == "Preconditions" && !m.hasDefect(n) {
				m.wrap(n.Value, fmt.Sprintf("mutant.Choose(%d, nil, ", m.add("precondition left out", n.Value, "nil")), ")")
			}
		}
		return true
	})
}

func (m *mutator) guardCall(call *ast.CallExpr) {
	var name *ast.Ident
	switch f := call.Fun.(type) {
	case *ast.Ident:
		name = f
	case *ast.SelectorExpr:
		name = f.Sel
	default:
		return
	}
	function, is := m.pkg.info.Uses[name].(*types.Func)
	if !is {
		return
	}
	g, known := guards[m.enums.short(function.FullName())]
	switch {
	case !known || m.hasDefect(call):
	case g.unless:
		m.insert(name.End(), "Unless")
		m.insert(call.Lparen+1, on(m.add(g.operator, span{name.Pos(), call.End()}, "nothing"))+", ")
	default:
		m.wrap(call, isTrue(m.add(g.operator, call, "true")), "))")
	}
}
