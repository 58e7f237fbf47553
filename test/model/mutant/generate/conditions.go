package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
)

// condition removes the case of the condition: the condition is never true. A condition without
// parts is dropped as well: it is always true.
func (m *mutator) condition(e ast.Expr) {
	if m.isErrorCheck(e) || m.isConstant(e) {
		return
	}
	if !m.hasDefect(e) {
		before, after := isFalse(m.add("case removed", e, "false")), "))"
		if isAtom(e) {
			before, after = isTrue(m.add("condition dropped", e, "true"))+before, after+after
		}
		m.wrap(e, before, after)
	}
	if !isEquality(e) {
		m.operands(e)
	}
}

// switchCases removes the cases of a switch.
func (m *mutator) switchCases(s *ast.SwitchStmt) {
	fallsTo := false // another clause than those that do nothing
	for _, clause := range s.Body.List {
		fallsTo = fallsTo || clause.(*ast.CaseClause).List == nil
	}
	for _, clause := range s.Body.List {
		c, _ := clause.(*ast.CaseClause)
		switch {
		case m.isInserted(c):
		case s.Tag != nil && (fallsTo || slices.ContainsFunc(c.Body, func(body ast.Stmt) bool { return !m.isInserted(body) })):
			for _, value := range c.List {
				m.caseValue(value)
			}
		case s.Tag == nil && len(c.List) == 1:
			m.condition(c.List[0])
		case s.Tag == nil:
			for _, e := range c.List {
				m.operand(token.LOR, e)
			}
		}
	}
}

// caseValue removes a value from a switch over it.
func (m *mutator) caseValue(e ast.Expr) {
	basic, is := m.pkg.info.TypeOf(e).Underlying().(*types.Basic)
	switch {
	case !is:
	case basic.Info()&types.IsInteger != 0:
		m.wrap(e, fmt.Sprintf("mutant.Choose(%d, ^(%s), ", m.add("case removed", e, "none"), m.source(e)), ")")
	case basic.Info()&types.IsString != 0:
		m.wrap(e, fmt.Sprintf(`mutant.Choose(%d, %s+"-", `, m.add("case removed", e, "none"), m.source(e)), ")")
	}
}

// operands drops the operands of && and ||, and swaps a comparison that is not one of them.
func (m *mutator) operands(e ast.Expr) {
	switch x := e.(type) {
	case *ast.ParenExpr:
		m.operands(x.X)
	case *ast.UnaryExpr:
		if x.Op == token.NOT && !isAtom(x.X) {
			m.operands(x.X)
		}
	case *ast.BinaryExpr:
		m.binary(x)
	}
}

func (m *mutator) binary(x *ast.BinaryExpr) {
	switch x.Op {
	case token.LAND, token.LOR:
		for _, operand := range chain(x, x.Op) {
			m.operand(x.Op, operand)
		}
	case token.EQL, token.NEQ:
		if !m.isNil(x.X) && !m.isNil(x.Y) && !m.hasDefect(x) {
			m.wrap(x, fmt.Sprintf("(%s != (", on(m.add("comparison swapped", x, "the opposite"))), "))")
		}
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		opposite := map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}[x.Op]
		changed := fmt.Sprintf("%s %s %s", m.source(x.X), opposite, m.source(x.Y))
		m.wrap(x, fmt.Sprintf("mutant.Choose(%d, %s, ", m.add("bound moved", x, changed), changed), ")")
	default: // arithmetic
	}
}

// operand drops one operand of a chain.
func (m *mutator) operand(op token.Token, e ast.Expr) {
	switch {
	case m.hasDefect(e):
	case op == token.LAND:
		m.wrap(e, isTrue(m.add("condition dropped", e, "true")), "))")
	default:
		m.wrap(e, isFalse(m.add("condition dropped", e, "false")), "))")
	}
	if !isEquality(e) {
		m.operands(e)
	}
}

// value mutates a boolean that is returned or assigned.
func (m *mutator) value(e ast.Expr) {
	switch {
	case m.hasDefect(e):
	case m.isConstant(e):
		m.wrap(e, fmt.Sprintf("(%s != ", on(m.add("value swapped", e, "the opposite"))), ")")
	case isAtom(e) && !isEquality(e) && !isOrder(e):
		m.wrap(e, fmt.Sprintf("(%s != (", on(m.add("value swapped", e, "the opposite"))), "))")
	default:
		m.operands(e)
	}
}

// field leaves a boolean field of a struct out.
func (m *mutator) field(e ast.Expr) {
	if m.isConstant(e) && !m.isTrue(e) || m.hasDefect(e) {
		return
	}
	m.wrap(e, isFalse(m.add("field left out", e, "false")), "))")
	m.operands(e)
}

// chain returns the operands of a chain of one operator.
func chain(e ast.Expr, op token.Token) []ast.Expr {
	if x, is := e.(*ast.BinaryExpr); is && x.Op == op {
		return append(chain(x.X, op), chain(x.Y, op)...)
	}
	return []ast.Expr{e}
}

// isAtom reports whether the condition has no parts.
func isAtom(e ast.Expr) bool {
	switch x := e.(type) {
	case *ast.ParenExpr:
		return isAtom(x.X)
	case *ast.UnaryExpr:
		return isAtom(x.X)
	case *ast.BinaryExpr:
		return x.Op != token.LAND && x.Op != token.LOR
	}
	return true
}

func isEquality(e ast.Expr) bool {
	x, is := e.(*ast.BinaryExpr)
	return is && (x.Op == token.EQL || x.Op == token.NEQ)
}

func isOrder(e ast.Expr) bool {
	x, is := e.(*ast.BinaryExpr)
	return is && (x.Op == token.LSS || x.Op == token.LEQ || x.Op == token.GTR || x.Op == token.GEQ)
}

func (m *mutator) isConstant(e ast.Expr) bool { return m.pkg.info.Types[e].Value != nil }

func (m *mutator) isTrue(e ast.Expr) bool {
	value := m.pkg.info.Types[e].Value
	return value != nil && value.Kind() == constant.Bool && constant.BoolVal(value)
}

func (m *mutator) isNil(e ast.Expr) bool { return m.pkg.info.Types[e].IsNil() }

// isErrorCheck reports whether the condition is only whether an error occurred.
func (m *mutator) isErrorCheck(e ast.Expr) bool {
	x, is := e.(*ast.BinaryExpr)
	return is && m.isNil(x.Y) && types.Identical(m.pkg.info.TypeOf(x.X), types.Universe.Lookup("error").Type())
}
