package blocker

import (
	"fmt"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// Verdict says whether the deletion of an object will come to its end. Higher values are
// worse.
type Verdict int

// The verdicts, from the best to the worst.
const (
	Gone Verdict = iota
	None
	Waiting
	Unknown
	Stuck
)

// String returns the verdict as the JSON output has it.
func (v Verdict) String() string {
	return enum.Name(v, "gone", "none", "waiting", "unknown", "stuck")
}

// MarshalText returns the verdict for JSON and YAML.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the verdict from JSON and YAML.
func (v *Verdict) UnmarshalText(text []byte) error {
	for candidate := Gone; candidate <= Stuck; candidate++ {
		if candidate.String() == string(text) {
			*v = candidate
			return nil
		}
	}
	return fmt.Errorf("parse verdict %q: want gone, none, waiting, unknown or stuck", text)
}

// Worst returns the worst verdict of the blockers and their blockers, or None without any.
func Worst(blockers []Blocker) Verdict {
	worst := None
	for _, blocker := range blockers {
		worst = max(worst, blocker.Verdict, Worst(blocker.Blockers))
	}
	return worst
}
