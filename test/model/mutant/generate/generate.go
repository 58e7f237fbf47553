package main

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/test/model/mutant"
)

// mutantPath is the folder of the package that selects a mutant.
const mutantPath = "test/model/mutant"

// result are the mutants, and the mutated texts by file.
type result struct {
	module  string
	folders []string
	mutants []mutant.Mutant
	files   map[string][]byte
}

// generate mutates the targets. The defects have the first IDs.
func generate(root string, targets []target, defects []defect) (*result, error) {
	var folders []string
	if len(defects) > 0 { // they import package mutant
		folders = append(folders, mutantPath)
	}
	for _, t := range targets {
		folders = append(folders, t.folder)
	}
	l, err := newLoader(root, folders)
	if err != nil {
		return nil, err
	}
	r := &result{module: l.module, folders: folders, files: map[string][]byte{}}
	byName := &inserter{defects: defects, mutants: make([]mutant.Mutant, len(defects)), changed: map[string]bool{}}
	for _, t := range targets {
		p, err := l.load(t.folder, func(path string, text []byte) ([]byte, error) {
			return byName.insert(path, text, l.module)
		})
		if err != nil {
			return nil, err
		}
		r.mutatePackage(l, p, t, byName)
		if name := t.missing(p); name != "" {
			return nil, fmt.Errorf("%s has no function %s to mutate", t.folder, name)
		}
	}
	if err := byName.check(); err != nil {
		return nil, err
	}
	r.mutants = append(byName.mutants, r.mutants...)
	r.distinguish()
	return r, nil
}

// mutatePackage mutates the files of a package in the order of their names.
func (r *result) mutatePackage(l *loader, p *loaded, t target, byName *inserter) {
	values := newEnums(l.module) // each package has types of its own
	for _, path := range slices.Sorted(maps.Keys(p.files)) {
		m := &mutator{
			fset: l.fset, pkg: p, file: p.files[path], path: path, text: p.texts[path], enums: values,
			last: len(byName.defects) + len(r.mutants),
		}
		m.mutate(t)
		r.mutants = append(r.mutants, m.mutants...)
		if len(m.mutants) > 0 || byName.changed[path] {
			r.files[path] = m.finish(l.module, byName.changed[path])
		}
	}
}

// distinguish numbers the mutants of one function that are described alike.
func (r *result) distinguish() {
	places := map[string]int{}
	for i := range r.mutants {
		key := r.mutants[i].Key()
		if places[key]++; places[key] > 1 {
			r.mutants[i].Original += fmt.Sprintf(" (place %d)", places[key])
		}
	}
}

// mutate mutates the functions of the file that the target names.
func (m *mutator) mutate(t target) {
	for _, declaration := range m.file.Decls {
		function, is := declaration.(*ast.FuncDecl)
		if !is || function.Body == nil || function.Name.Name == "String" {
			continue
		}
		m.function = function.Name.Name
		if t.decides(m.path, m.function) {
			m.decisions(function.Body)
		}
		m.guardCalls(function.Body)
	}
}

// finish returns the mutated text, with an import of package mutant.
func (m *mutator) finish(module string, imported bool) []byte {
	if !imported {
		m.insert(m.file.Name.End(), importOf(module))
	}
	return m.mutated()
}

func importOf(module string) string {
	return fmt.Sprintf("; import %q", module+"/"+mutantPath)
}

// decides reports whether the decisions of the function are mutated.
func (t target) decides(path, function string) bool {
	if t.shell {
		return slices.Contains(t.functions, function)
	}
	return !slices.Contains(t.functions, function) && !slices.ContainsFunc(t.leaveOut, func(name string) bool { return strings.HasSuffix(path, "/"+name) })
}

// missing returns a function of the target that the package does not have, "" for none.
func (t target) missing(p *loaded) string {
	for _, name := range t.functions {
		found := slices.ContainsFunc(slices.Collect(maps.Values(p.files)), func(file *ast.File) bool {
			return slices.ContainsFunc(file.Decls, func(declaration ast.Decl) bool {
				function, is := declaration.(*ast.FuncDecl)
				return is && function.Name.Name == name
			})
		})
		if !found {
			return name
		}
	}
	return ""
}
