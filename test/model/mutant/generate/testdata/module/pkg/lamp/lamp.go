// Package lamp decides about a lamp.
package lamp

import "example.com/module/pkg/patch"

// Action is the next step for the lamp.
type Action int

const (
	// Wait changes nothing.
	Wait Action = iota
	// SwitchOn switches the lamp on.
	SwitchOn
	// SwitchOff switches the lamp off.
	SwitchOff
)

// Decision is an action and its reason.
type Decision struct {
	Action Action
	Reason string
}

// Color is the color of the light.
type Color string

// Red and Green are colors.
const (
	Red   Color = "red"
	Green Color = "green"
)

// State is what is known about the lamp.
type State struct {
	Dark, Lit, Broken bool
	Color             Color
	Hours             int
}

// Decide returns the next step.
func Decide(s State) Decision {
	switch {
	case s.Broken:
		return Decision{Wait, "broken"}
	case s.Dark && !s.Lit:
		return Decision{SwitchOn, "dark"}
	case s.Lit && (!s.Dark || s.Hours > 9):
		return Decision{SwitchOff, "light"}
	}
	return Decision{Action: Wait, Reason: "right"}
}

// IsWarm reports whether the light is warm.
func IsWarm(s State) bool {
	if s.Hours < 1 {
		return false
	}
	switch s.Color {
	case Red:
		return s.Lit
	case Green:
	}
	return s.Color == ""
}

// Guard tests the color.
func Guard(p *patch.Patch, s State) *patch.Patch {
	return p.Test("/color", s.Color).Test("/hours", s.Hours)
}
