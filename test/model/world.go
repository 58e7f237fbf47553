package model

import (
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/test/model/process"
)

// world is one configuration in a lab.
type world struct {
	*Lab
	config   Config
	machines []processes
}

// processes are the processes of one program: a [process.Machine], or a [process.Forward].
type processes interface {
	Local(state process.State) *process.Local
	Next(state process.State, input process.Input, text string) (process.State, error)
	Loop(number int) string
}

func newWorld(lab *Lab, config Config) (*world, error) {
	w := &world{Lab: lab, config: config}
	for _, program := range config.Programs {
		machine, known := lab.machines[program.machine()]
		if !known {
			var err error
			if machine, err = process.NewMachine(program.Build); err != nil {
				return nil, err
			}
			machine.Concurrent = program.Concurrent
			lab.machines[program.machine()] = machine
		}
		w.machines = append(w.machines, machine)
	}
	return w, nil
}

// initial returns the first state.
func (w *world) initial() *State {
	s := &State{
		instances: make([]instance, len(w.config.Programs)),
		crashes:   int8(w.config.Crashes), losses: int8(w.config.Losses), errors: int8(w.config.Errors),
		hours:   int8(w.config.Hours),
		denials: int8(w.config.Denials), undos: int8(w.config.Undos),
		restores: int8(w.config.Restores), backups: int8(w.config.Backups),
		wrongAnswers: int8(w.config.WrongAnswers), switches: int8(w.config.Switches),
		interruptions: int8(w.config.Interruptions), stalls: int8(w.config.Stalls), oldLists: int8(w.config.OldLists),
		delays: int8(w.config.Delays),
	}
	for _, object := range w.config.Objects {
		s = w.put(s, w.slot(object.Key), w.intern(object))
	}
	s = w.backedUp(s)
	for i := range s.instances {
		s.instances[i].terms = w.config.Terms
	}
	for _, handle := range w.config.Disks {
		s.disks = union(s.disks, w.internDisk(disk{handle: handle, name: strings.TrimPrefix(handle, diskPrefix)}))
	}
	for _, handle := range w.config.Kept {
		s.kept = union(s.kept, w.diskWith(s, handle))
	}
	if w.config.GivenUp {
		s.givenUp = slices.Clone(s.disks)
	}
	if w.config.Filled {
		s.filled = slices.Clone(s.disks)
	}
	return s
}

// local returns what is known of the running process.
func (w *world) local(s *State, i int) *process.Local {
	return w.machines[i].Local(s.instances[i].local)
}

// isBusy reports whether a pass of the program has not ended.
func (s *State) isBusy(w *world, i int) bool {
	return w.local(s, i).Busy || w.machines[i].Local(s.instances[i].former).Busy
}
