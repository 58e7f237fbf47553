package measure

// Turn is one scenario with the programs of one side.
type Turn struct {
	// Scenario is the name of the scenario, Side that of the side.
	Scenario, Side string
	// Round counts from 1.
	Round  int
	Phases []Phase
	// PeakMemory is in bytes by process: of the programs since their start, of the API server
	// since its start.
	PeakMemory map[string]float64
}

// Result is everything that one invocation measured.
type Result struct {
	// Date is a day, Machine describes processor and system, Version is that of our programs.
	Date, Machine, Version string
	Turns                  []Turn
}

// Phase returns the phase with the name, false for none.
func (t Turn) Phase(name string) (Phase, bool) {
	for _, phase := range t.Phases {
		if phase.Name == name {
			return phase, true
		}
	}
	return Phase{}, false
}
