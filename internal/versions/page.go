package versions

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// The markers of the table in a page.
const (
	beginMarker = "<!-- Written by make e2e: begin. Changes by hand are lost. -->"
	endMarker   = "<!-- Written by make e2e: end. -->"
)

// Update returns the page with the table of the results between its markers.
func Update(page string, results []Result) (string, error) {
	before, rest, begins := strings.Cut(page, beginMarker)
	_, after, ends := strings.Cut(rest, endMarker)
	if !begins || !ends {
		return "", fmt.Errorf("update page: the markers are missing: %s and %s", beginMarker, endMarker)
	}
	return before + beginMarker + "\n\n" + Table(results) + "\n" + endMarker + after, nil
}

// UpdateFile writes the table of the results into a page.
func UpdateFile(file string, results []Result) error {
	page, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	updated, err := Update(string(page), results)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := os.WriteFile(file, []byte(updated), 0o600); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// Table returns the results as a Markdown table, one row for each version.
func Table(results []Result) string {
	var text strings.Builder
	text.WriteString("| Kubernetes | end-to-end tests | scenarios beside the loops of this version | not available there |\n|---|---|---|---|\n")
	all := map[string]bool{}
	for _, result := range results {
		for name := range result.Packages {
			all[name] = true
		}
	}
	for _, result := range results {
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", result.Kubernetes, result.tests(all), result.scenarios(), result.unavailable())
	}
	return text.String()
}

// tests counts the tests, and names the packages that did not run.
func (r Result) tests(all map[string]bool) string {
	passed, failed, skipped := 0, 0, 0
	for _, one := range r.Packages {
		passed, failed, skipped = passed+one.Passed, failed+len(one.Failed), skipped+len(one.Skipped)
	}
	text := fmt.Sprintf("%d passed", passed)
	if failed > 0 {
		text += fmt.Sprintf(", %d FAILED", failed)
	}
	if skipped > 0 {
		text += fmt.Sprintf(", %d skipped", skipped)
	}
	text += fmt.Sprintf(", in %d packages", len(r.Packages))
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, ran := r.Packages[name]; !ran {
			missing = append(missing, "`"+name+"`")
		}
	}
	if len(missing) > 0 {
		text += "; not run: " + strings.Join(missing, ", ")
	}
	return text
}

func (r Result) scenarios() string {
	equal, intended := 0, 0
	for _, one := range r.Packages {
		equal, intended = equal+one.Equal, intended+one.Intended
	}
	if equal+intended == 0 {
		return "not run"
	}
	return fmt.Sprintf("%d: %d equal, %d with intended differences", equal+intended, equal, intended)
}

// unavailable returns the sentences, each with its tests.
func (r Result) unavailable() string {
	tests := map[string][]string{}
	for _, one := range r.Packages {
		for sentence, names := range one.Unavailable {
			tests[sentence] = append(tests[sentence], names...)
		}
	}
	var sentences []string
	for _, sentence := range slices.Sorted(maps.Keys(tests)) {
		slices.Sort(tests[sentence])
		sentences = append(sentences, fmt.Sprintf("%s (`%s`)", sentence, strings.Join(slices.Compact(tests[sentence]), "`, `")))
	}
	return strings.Join(sentences, "; ")
}
