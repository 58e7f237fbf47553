package versions

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The keys of test attributes.
const (
	// Unavailable is a sentence about what this version of Kubernetes lacks.
	Unavailable = "unavailable"
	// Scenario is the outcome of a scenario: ScenarioEqual or ScenarioIntended.
	Scenario         = "scenario"
	ScenarioEqual    = "equal"
	ScenarioIntended = "intended"
)

// Result has the end-to-end tests on one version of Kubernetes.
type Result struct {
	// Kubernetes is the version of the API server and of upstream's loops, such as v1.36.3.
	Kubernetes string `json:"kubernetes"`
	// Packages are the tested packages, by their path in the repository.
	Packages map[string]Package `json:"packages"`
}

// Package has the top-level tests of one package.
type Package struct {
	Passed int `json:"passed"`
	// Failed and Skipped are names of tests. Skipped has subtests too.
	Failed  []string `json:"failed,omitempty"`
	Skipped []string `json:"skipped,omitempty"`
	// Equal and Intended count scenarios: with the same outcome as upstream's loops, and with
	// intended differences only.
	Equal    int `json:"equal,omitempty"`
	Intended int `json:"intended,omitempty"`
	// Unavailable has the tests that met something that the version lacks, by the sentence.
	Unavailable map[string][]string `json:"unavailable,omitempty"`
}

// Minor returns the minor version, such as 1.36.
func (r Result) Minor() string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(r.Kubernetes, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}

// OK returns an error if a test failed or was skipped.
func (r Result) OK() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(r.Packages)) {
		if failed := r.Packages[name].Failed; len(failed) > 0 {
			errs = append(errs, fmt.Errorf("%s: failed on Kubernetes %s: %s", name, r.Kubernetes, strings.Join(failed, ", ")))
		}
		if skipped := r.Packages[name].Skipped; len(skipped) > 0 {
			errs = append(errs, fmt.Errorf("%s: skipped on Kubernetes %s: %s", name, r.Kubernetes, strings.Join(skipped, ", ")))
		}
	}
	return errors.Join(errs...)
}

// merge replaces the packages that ran again. Results of another patch version are dropped.
func (r Result) merge(run Result) Result {
	merged := Result{Kubernetes: run.Kubernetes, Packages: map[string]Package{}}
	if r.Kubernetes == run.Kubernetes {
		maps.Copy(merged.Packages, r.Packages)
	}
	maps.Copy(merged.Packages, run.Packages)
	return merged
}

// Load returns the results in the directory, the newest version first.
func Load(directory string) ([]Result, error) {
	files, err := filepath.Glob(filepath.Join(directory, "*.json"))
	if err != nil {
		return nil, err
	}
	var results []Result
	for _, file := range files {
		result, err := load(file)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	slices.SortFunc(results, func(a, b Result) int { return strings.Compare(b.Minor(), a.Minor()) })
	return results, nil
}

func load(file string) (Result, error) {
	var result Result
	text, err := os.ReadFile(file)
	if err != nil {
		return result, fmt.Errorf("read result: %w", err)
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return result, fmt.Errorf("read result %s: %w", file, err)
	}
	return result, nil
}

// Save adds a run to the results in the directory.
func Save(directory string, run Result) error {
	file := filepath.Join(directory, run.Minor()+".json")
	before, err := load(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	text, err := json.MarshalIndent(before.merge(run), "", "  ")
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return fmt.Errorf("make directory of results: %w", err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}
