package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// outcome is what became of the specs.
type outcome struct {
	specs []spec
	// suite has the failures outside of specs.
	suite []string
}

// spec is one spec that ran.
type spec struct {
	name    string
	passed  bool
	runtime time.Duration
	// failure is what the spec said when it failed.
	failure string
}

// ginkgoReport is the part of Ginkgo's JSON report that is used.
type ginkgoReport struct {
	SpecReports                []ginkgoSpec
	SpecialSuiteFailureReasons []string
}

type ginkgoSpec struct {
	LeafNodeType, LeafNodeText, State string
	RunTime                           time.Duration
	Failure                           struct{ Message string }
}

// readReport reads Ginkgo's JSON report.
func readReport(file string) (outcome, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return outcome{}, fmt.Errorf("read report: %w", err)
	}
	return decodeReport(text)
}

// decodeReport returns the specs that ran, and what failed outside of them. Specs that the
// focus leaves out do not count.
func decodeReport(text []byte) (outcome, error) {
	var suites []ginkgoReport
	if err := json.Unmarshal(text, &suites); err != nil {
		return outcome{}, fmt.Errorf("decode report: %w", err)
	}
	var o outcome
	for _, suite := range suites {
		for _, s := range suite.SpecReports {
			o.add(s)
		}
		if len(o.suite) == 0 { // else the reasons repeat what failed
			o.suite = suite.SpecialSuiteFailureReasons
		}
	}
	return o, nil
}

// add adds what became of one node of the suite.
func (o *outcome) add(s ginkgoSpec) {
	switch {
	case s.LeafNodeType != "It" && s.State != "passed" && s.State != "skipped":
		o.suite = append(o.suite, s.LeafNodeType+": "+s.Failure.Message)
	case s.LeafNodeType == "It" && s.State == "skipped" && s.Failure.Message == "":
	case s.LeafNodeType == "It":
		o.specs = append(o.specs, spec{name: s.LeafNodeText, passed: s.State == "passed", runtime: s.RunTime,
			failure: s.Failure.Message})
	}
}

// String returns a line for each spec and the reasons of failures.
func (o outcome) String() string {
	var text strings.Builder
	for _, s := range o.specs {
		result := "passed"
		if !s.passed {
			result = "FAILED"
		}
		fmt.Fprintf(&text, "%s %6.1fs  %s\n", result, s.runtime.Seconds(), s.name)
		if s.failure != "" {
			fmt.Fprintf(&text, "    %s\n", strings.ReplaceAll(s.failure, "\n", "\n    "))
		}
	}
	for _, failure := range o.suite {
		fmt.Fprintf(&text, "FAILED outside of specs: %s\n", failure)
	}
	return text.String()
}

// summary returns how many specs passed.
func (o outcome) summary() string {
	return fmt.Sprintf("%d of %d specs passed", o.passed(), len(o.specs))
}

func (o outcome) passed() int {
	count := 0
	for _, s := range o.specs {
		if s.passed {
			count++
		}
	}
	return count
}

// err returns an error unless specs ran and all passed.
func (o outcome) err() error {
	switch {
	case len(o.specs) == 0:
		return errors.New("no spec ran")
	case o.passed() < len(o.specs) || len(o.suite) > 0:
		return errors.New("not all specs passed")
	}
	return nil
}
