package garbage

import (
	"fmt"

	"github.com/exeunt-io/exeunt/test/model/explore"
)

// Explore explores a configuration breadth-first. It is called within a bubble of testing/synctest.
func Explore(config *Config, limits explore.Limits) (explore.Result, error) {
	machine, err := newMachine(config)
	if err != nil {
		return explore.Result{}, err
	}
	defer machine.Close()
	if config.States > 0 && limits.States == 0 {
		limits.States = config.States
	}
	result, err := explore.Run(&world{config, machine}, limits)
	if err != nil {
		return result, fmt.Errorf("%s, %w", config.Name, err)
	}
	return result, nil
}

// Key returns a digest of the state.
func (w *world) Key(s *State) [2]uint64 { return digest(s.key()) }
