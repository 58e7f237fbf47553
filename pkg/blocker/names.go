package blocker

import (
	"fmt"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// Reasons returns all reasons in the order of the table.
func Reasons() []Reason {
	all := make([]Reason, len(descriptions))
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// Describe returns the row of the reason.
func (r Reason) Describe() Description {
	if r < 0 || int(r) >= len(descriptions) {
		return Description{Name: r.String()}
	}
	return descriptions[r]
}

// String returns the name of the reason.
func (r Reason) String() string {
	names := make([]string, len(descriptions))
	for i, row := range descriptions {
		names[i] = row.Name
	}
	return enum.Name(r, names...)
}

// MarshalText returns the reason for JSON and YAML.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the reason from JSON and YAML.
func (r *Reason) UnmarshalText(text []byte) error {
	for _, candidate := range Reasons() {
		if candidate.String() == string(text) {
			*r = candidate
			return nil
		}
	}
	return fmt.Errorf("parse reason %q: no such reason", text)
}
