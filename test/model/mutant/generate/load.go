package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// loader parses and type-checks packages of the module. Imports come from export data, which
// the go command keeps in its cache.
type loader struct {
	root, module string
	fset         *token.FileSet
	exports      map[string]string
	importer     types.Importer
}

// loaded is a package with the texts of its files, by path in the module.
type loaded struct {
	path  string
	files map[string]*ast.File
	texts map[string][]byte
	info  *types.Info
	types *types.Package
}

func newLoader(root string, folders []string) (*loader, error) {
	module, err := goCommand(root, "list", "-m")
	if err != nil {
		return nil, err
	}
	l := &loader{root: root, module: strings.TrimSpace(module), fset: token.NewFileSet(), exports: map[string]string{}}
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, folder := range folders {
		args = append(args, "./"+folder)
	}
	list, err := goCommand(root, args...)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(list) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		l.exports[path] = file
	}
	l.importer = importer.ForCompiler(l.fset, "gc", l.open)
	return l, nil
}

func goCommand(root string, args ...string) (string, error) {
	command := exec.Command("go", args...)
	command.Dir = root
	var failure bytes.Buffer
	command.Stderr = &failure
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("run go %s: %w: %s", args[0], err, failure.String())
	}
	return string(output), nil
}

// open returns the export data of a package.
func (l *loader) open(path string) (io.ReadCloser, error) {
	file := l.exports[path]
	if file == "" {
		return nil, errors.New("no export data")
	}
	return os.Open(file)
}

// load type-checks the package in the folder, after the edit of the texts of its files.
func (l *loader) load(folder string, edit func(file string, text []byte) ([]byte, error)) (*loaded, error) {
	names, err := filepath.Glob(filepath.Join(l.root, folder, "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", folder, err)
	}
	p := &loaded{
		path: l.module + "/" + folder, files: map[string]*ast.File{}, texts: map[string][]byte{},
		info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}},
	}
	var parsed []*ast.File
	for _, name := range slices.Sorted(slices.Values(names)) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := l.parse(p, path.Join(folder, filepath.Base(name)), edit)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, file)
	}
	config := types.Config{Importer: l.importer}
	if p.types, err = config.Check(p.path, l.fset, parsed, p.info); err != nil {
		return nil, fmt.Errorf("check the types of %s: %w", folder, err)
	}
	return p, nil
}

func (l *loader) parse(p *loaded, path string, edit func(string, []byte) ([]byte, error)) (*ast.File, error) {
	text, err := os.ReadFile(filepath.Join(l.root, path))
	if err != nil {
		return nil, fmt.Errorf("read source: %w", err)
	}
	if text, err = edit(path, text); err != nil {
		return nil, err
	}
	file, err := parser.ParseFile(l.fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", path, err)
	}
	p.files[path], p.texts[path] = file, text
	return file, nil
}
