package mutant

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Summary is what the last line of a deep run of a model says.
type Summary struct {
	Configurations, States, Violations, Killed, Mutants int
}

// Explored is the line without the mutants.
func (s Summary) Explored() string {
	return fmt.Sprintf("%d configurations, %d states, %d violations", s.Configurations, s.States, s.Violations)
}

// String returns the whole line.
func (s Summary) String() string {
	return fmt.Sprintf("%s, %d of %d mutants killed", s.Explored(), s.Killed, s.Mutants)
}

// ParseSummary reads a whole line.
func ParseSummary(line string) (Summary, error) {
	var s Summary
	const format = "%d configurations, %d states, %d violations, %d of %d mutants killed"
	if _, err := fmt.Sscanf(line, format, &s.Configurations, &s.States, &s.Violations, &s.Killed, &s.Mutants); err != nil {
		return Summary{}, fmt.Errorf("read the line %q: %w", line, err)
	}
	return s, nil
}

// Plus returns the summary of two models.
func (s Summary) Plus(other Summary) Summary {
	return Summary{
		s.Configurations + other.Configurations, s.States + other.States, s.Violations + other.Violations,
		s.Killed + other.Killed, s.Mutants + other.Mutants,
	}
}

// Finish prints the last line of the model, and writes what was explored to the file, "" for none. The
// command unittests completes that line.
func (s Summary) Finish(model, file string) error {
	fmt.Printf("%s: %s\n", model, s)
	if file == "" {
		return nil
	}
	return os.WriteFile(file, []byte(model+": "+s.Explored()), 0o600)
}

// WriteKilled writes the keys of the killed mutants to the file, a line each; "" for no file.
func WriteKilled(file string, keys []string) error {
	if file == "" {
		return nil
	}
	slices.Sort(keys)
	return os.WriteFile(file, []byte(strings.Join(append(keys, ""), "\n")), 0o600)
}
