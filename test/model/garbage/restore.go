package garbage

import "strings"

// Backup is a backup of etcd.
type Backup struct {
	objects  [maxSlots]*Object
	counters [maxKinds]int
	// before and blockers: see State.
	before, blockers [maxSlots]edges
}

func (s *State) backUp() *Backup { return &Backup{s.objects, s.counters, s.before, s.blockers} }

// text identifies the backup.
func (b *Backup) text() string {
	var out strings.Builder
	for _, o := range b.objects {
		o.text(&out)
	}
	return out.String()
}

// stop ends the collector.
func (s *State) stop() {
	s.collector, s.served, s.paused, s.restored, s.relist = 0, nil, false, false, [maxKinds]bool{}
}

// backsUp takes a backup in the place of that of the first state.
func backsUp() Action {
	return Action{"takes a backup", func(_ *world, s *State) bool {
		s.backup = s.backUp()
		return true
	}}
}

// raise is by how much a restore raises versions.
const raise = 1000

// restores restores the backup, which takes longer than any live read is good for. With raised versions all
// watches end. Without, they go on, and show what gets a version that they have not seen.
func restores(raised bool) Action {
	says := "restores the backup with the same versions"
	if raised {
		says = "restores the backup with raised versions"
	}
	return Action{says, func(w *world, s *State) bool {
		// Open calls would fail, as by other faults.
		if s.objects == s.backup.objects || len(w.machine.states[s.collector].Calls) > 0 {
			return false
		}
		s.objects, s.before, s.blockers = s.backup.objects, s.backup.before, s.backup.blockers
		s.witness, s.late, s.served = [maxSlots]uint8{}, nil, nil
		for k := range w.config.Kinds {
			s.views[k].events = nil
			if raised {
				s.counters[k] += raise
			} else {
				s.counters[k] = s.backup.counters[k]
			}
			s.relist[k] = raised && s.collector != 0
		}
		s.restored = s.collector != 0
		return w.wait(s, longAgo)
	}}
}

// wait lets seconds pass. It returns false if the collector cannot go on.
func (w *world) wait(s *State, seconds int) bool {
	if s.collector == 0 {
		return true
	}
	for range seconds {
		after, err := w.pass(s)
		if err != nil {
			return false
		}
		*s = *after
	}
	return true
}

// termEnds returns the step in which the leader reads that its Lease went back.
func (w *world) termEnds(s *State) []Step {
	if !s.restored || !w.config.Elected {
		return nil
	}
	after := s.clone()
	after.stop()
	return []Step{{Says: "the leader finds its Lease in an older version, and ends", After: after, Free: true}}
}

// away returns the steps in which the API server goes away, and comes back.
func (w *world) away(s *State) []Step {
	after := s.clone()
	switch {
	case s.away:
		after.away = false
		return []Step{{Says: "the API server is back", After: after, Free: true}}
	case s.faults.Away > 0 && s.collector != 0:
		after.faults.Away--
		after.away = true
		return []Step{{Says: "the API server goes away", After: after}}
	}
	return nil
}
