package main

import (
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

const eql = token.EQL

// enums finds the values of enum types: integer types of the module with constants.
type enums struct {
	module string
	known  map[*types.TypeName][]*types.Const
}

// of returns the values of the type by ascending value, nil if it is no enum type. Reasons are not
// mutated: nothing depends on them.
func (n *enums) of(t types.Type) []*types.Const {
	named, is := t.(*types.Named)
	if !is || named.Obj().Pkg() == nil || named.Obj().Name() == "Reason" || !strings.HasPrefix(named.Obj().Pkg().Path(), n.module) {
		return nil
	}
	if basic, is := named.Underlying().(*types.Basic); !is || basic.Info()&types.IsInteger == 0 {
		return nil
	}
	if values, known := n.known[named.Obj()]; known {
		return values
	}
	var values []*types.Const
	scope := named.Obj().Pkg().Scope()
	for _, name := range scope.Names() {
		if c, is := scope.Lookup(name).(*types.Const); is && types.Identical(c.Type(), t) {
			values = append(values, c)
		}
	}
	slices.SortStableFunc(values, func(a, b *types.Const) int {
		if constant.Compare(a.Val(), token.LSS, b.Val()) {
			return -1
		}
		return 1
	})
	n.known[named.Obj()] = values
	return values
}

func isBool(t types.Type) bool {
	basic, is := t.Underlying().(*types.Basic)
	return is && basic.Info()&types.IsBoolean != 0
}

// short returns the full name of a function without the name of the module.
func (n *enums) short(name string) string {
	return strings.Replace(name, n.module+"/", "", 1)
}

func newEnums(module string) *enums {
	return &enums{module: module, known: map[*types.TypeName][]*types.Const{}}
}
