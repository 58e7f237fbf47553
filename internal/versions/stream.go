package versions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// module is the prefix of the packages of this repository.
const module = "github.com/exeunt-io/exeunt/"

// event is a line of "go test -json".
type event struct {
	Action, Package, Test, Output, Key, Value string
}

// reader collects the results of a run.
type reader struct {
	print    io.Writer
	packages map[string]Package
	// ended are the packages whose tests have ended.
	ended map[string]bool
	// output is what each running top-level test of a package has printed.
	output map[string]map[string]*strings.Builder
}

// Read reads the output of "go test -json". It prints what "go test" prints: the output of
// failed tests, and a line for each package. Packages that have not ended are left out.
func Read(kubernetes string, from io.Reader, to io.Writer) (Result, error) {
	r := reader{print: to, packages: map[string]Package{}, ended: map[string]bool{}, output: map[string]map[string]*strings.Builder{}}
	for decoder := json.NewDecoder(from); ; {
		var e event
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			return r.result(kubernetes), nil
		}
		if err != nil {
			return r.result(kubernetes), fmt.Errorf("read output of go test: %w", err)
		}
		r.add(e)
	}
}

func (r *reader) result(kubernetes string) Result {
	maps.DeleteFunc(r.packages, func(name string, _ Package) bool { return !r.ended[name] })
	return Result{Kubernetes: kubernetes, Packages: r.packages}
}

func (r *reader) add(e event) {
	test, _, inner := strings.Cut(e.Test, "/")
	switch {
	case e.Action == "output" && test != "":
		r.outputOf(e.Package, test).WriteString(e.Output)
	case (e.Action == "output" && e.Output != "PASS\n") || e.Action == "build-output":
		fmt.Fprint(r.print, e.Output)
	case test == "":
		r.endPackage(e)
	case e.Action == "attr":
		r.change(e.Package, func(p *Package) { p.describe(test, e.Key, e.Value) })
	case e.Action == "skip":
		r.change(e.Package, func(p *Package) { p.Skipped = append(p.Skipped, e.Test) })
	case !inner && e.Action == "pass":
		r.change(e.Package, func(p *Package) { p.Passed++ })
		delete(r.output[e.Package], test)
	case !inner && e.Action == "fail":
		r.change(e.Package, func(p *Package) { p.Failed = append(p.Failed, test) })
		fmt.Fprint(r.print, r.outputOf(e.Package, test))
		delete(r.output[e.Package], test)
	}
}

// endPackage notes the end of a package, and a failure without a failed test: in TestMain, in a
// panic, or in the build. It prints what the unfinished tests have printed.
func (r *reader) endPackage(e event) {
	if e.Action == "pass" || e.Action == "fail" {
		r.ended[strings.TrimPrefix(e.Package, module)] = true
	}
	if e.Action != "fail" {
		return
	}
	for _, output := range r.output[e.Package] {
		fmt.Fprint(r.print, output)
	}
	r.change(e.Package, func(p *Package) {
		if len(p.Failed) == 0 {
			p.Failed = append(p.Failed, "the package")
		}
	})
}

func (r *reader) outputOf(pkg, test string) *strings.Builder {
	if r.output[pkg] == nil {
		r.output[pkg] = map[string]*strings.Builder{}
	}
	if r.output[pkg][test] == nil {
		r.output[pkg][test] = &strings.Builder{}
	}
	return r.output[pkg][test]
}

func (r *reader) change(pkg string, change func(*Package)) {
	name := strings.TrimPrefix(pkg, module)
	changed := r.packages[name]
	change(&changed)
	slices.Sort(changed.Failed)
	slices.Sort(changed.Skipped)
	r.packages[name] = changed
}

// describe adds an attribute of a test.
func (p *Package) describe(test, key, value string) {
	switch {
	case key == Scenario && value == ScenarioEqual:
		p.Equal++
	case key == Scenario && value == ScenarioIntended:
		p.Intended++
	case key == Unavailable:
		if p.Unavailable == nil {
			p.Unavailable = map[string][]string{}
		}
		if tests := p.Unavailable[value]; !slices.Contains(tests, test) {
			p.Unavailable[value] = slices.Sorted(slices.Values(append(tests, test)))
		}
	}
}
