package teardown

import "github.com/exeunt-io/exeunt/pkg/teardown"

// users adds what users do to Alive and to what guards it.
func (w World) users(s State, add adder) {
	user := func(left func(*Left) *uint8, says string, may bool, change func(*State)) {
		add(false, says, func(s *State) {
			if n := left(&s.Left); *n > 0 && may {
				*n--
				change(s)
			}
		})
	}
	a := s.API.Alive
	lives := a.Exists && !a.New
	user(func(l *Left) *uint8 { return &l.Permits }, "a person permits the teardown", lives, func(s *State) {
		s.API.Alive.Protected, s.API.Alive.Word, s.Restored = false, teardown.ValidWord, false
	})
	user(func(l *Left) *uint8 { return &l.Errs }, "a person permits with another ID", lives, func(s *State) {
		s.API.Alive.Protected, s.API.Alive.Word = false, teardown.OtherWord
	})
	user(func(l *Left) *uint8 { return &l.Protects }, "a person stops the teardown", lives && !a.Protected,
		func(s *State) { w.protect(s) })
	user(func(l *Left) *uint8 { return &l.Deletes }, "a person deletes Alive", lives && !a.Protected && a.Held && !a.Deleting,
		func(s *State) {
			s.API.Alive.Deleting, s.Asked = true, true
		})
	user(func(l *Left) *uint8 { return &l.Expires }, "the deadline comes", a.Word == teardown.ValidWord,
		func(s *State) {
			s.API.Alive.Word = teardown.ExpiredWord
		})
	w.guardUsers(s, user)
	w.volumeUsers(s, user)
	w.serviceUsers(s, user)
}

// guardUsers adds what users do to the guards of Alive, and against its rules.
func (w World) guardUsers(s State, user func(left func(*Left) *uint8, says string, may bool, change func(*State))) {
	a := s.API.Alive
	lives := a.Exists && !a.New
	user(func(l *Left) *uint8 { return &l.DeletesDefinition }, "a user deletes the CRD", lives, func(s *State) {
		s.API.Undefined, s.API.Alive.Deleting = true, true
	})
	user(func(l *Left) *uint8 { return &l.Unfreezes }, "a user removes the freeze", lives && a.Held,
		func(s *State) { s.API.Freeze = teardown.NoFreeze })
	user(func(l *Left) *uint8 { return &l.StatusEdits }, "a user writes condition Started", lives,
		func(s *State) { s.API.Alive.Started = true })
	user(func(l *Left) *uint8 { return &l.Refuses }, "the cluster begins to serve another one", !a.Started,
		func(s *State) { s.API.Unready = true })
	user(func(l *Left) *uint8 { return &l.Strips }, "a user strips our finalizer", a.Held && a.Started,
		func(s *State) { s.API.Alive.Held = false })
	stopped := a.Deleting && a.Protected && !a.Started && s.API.Freeze == teardown.NoFreeze
	user(func(l *Left) *uint8 { return &l.Aborts }, "an abort makes a new Alive", lives && stopped, func(s *State) {
		s.API.Alive, s.API.Planned = Alive{Exists: true, Held: true, Protected: true, Participant: true, New: true}, false
	})
}

// protect is what --abort does first: what is Terminating already is saved by the policy.
func (w World) protect(s *State) {
	s.API.Alive.Protected = true
	for n := range s.API.Sets {
		if set := &s.API.Sets[n]; set.Claim.Deleting && set.Volume.Exists && set.Volume.Deletable {
			set.Volume.Deletable, set.Must = w.Unsaved, true
		}
	}
}

// volumeUsers adds what users do to claims and volumes.
func (w World) volumeUsers(s State, user func(func(*Left) *uint8, string, bool, func(*State))) {
	set := s.API.Sets[0]
	there, claimed := set.Volume.Exists, set.Claim.Phase != NoClaim && !set.Claim.Deleting
	user(func(l *Left) *uint8 { return &l.DeletesClaim }, "a user deletes the first claim", claimed,
		func(s *State) {
			set := &s.API.Sets[0]
			set.Claim.Deleting, set.Must = true, set.Must && !set.Volume.Deletable
		})
	user(func(l *Left) *uint8 { return &l.Retains }, "a user sets Retain on the first volume", there && set.Volume.Deletable,
		func(s *State) {
			s.API.Sets[0].Volume.Deletable, s.API.Sets[0].Must = false, true
		})
	user(func(l *Left) *uint8 { return &l.Labels }, "a user labels the first volume", there && !set.Volume.Label,
		func(s *State) {
			set := &s.API.Sets[0]
			// A DELETE of its claim that was sent already is not taken back by a label, only by the policy.
			set.Volume.Label, set.Must = true, set.Must || set.Claim.Phase != NoClaim && !set.Claim.Deleting && !s.Late.Sent
		})
	user(func(l *Left) *uint8 { return &l.SetsDelete }, "a user sets Delete on the second volume", !s.API.Sets[1].Volume.Deletable,
		func(s *State) {
			set := &s.API.Sets[1]
			set.Volume.Deletable, set.Must = true, set.Must && set.Volume.Label
		})
}

// faults adds what goes wrong.
func (w World) faults(s State, add adder) {
	for n := range s.Runners {
		w.runnerFaults(s, n, add)
	}
	add(false, "the other runner leads", func(s *State) {
		if s.Left.Takeovers > 0 {
			s.Left.Takeovers--
			s.takeOver(1 - int(s.Leader))
		}
	})
	add(false, "a late write takes effect", func(s *State) {
		if late := s.Late; late.Sent {
			s.Late = Write{}
			w.effect(s, late)
		}
	})
	w.provisionerFaults(add)
	add(false, "etcd is backed up", func(s *State) {
		if s.Left.Backups > 0 {
			s.Left.Backups--
			s.Backup = s.API
		}
	})
	add(false, "etcd is restored", func(s *State) {
		if s.Left.Restores > 0 && s.Backup.Alive.Exists {
			s.Left.Restores--
			s.restore()
		}
	})
}

// restore brings back what etcd had more than ten minutes ago. What is outside of etcd stays.
func (s *State) restore() {
	now := s.API
	s.API, s.Backup, s.Late = s.Backup, API{}, Write{}
	s.API.Bucket, s.API.Service.Balancer = now.Bucket, now.Service.Balancer
	for n := range s.API.Sets {
		s.API.Sets[n].Disk, s.API.Sets[n].Call = now.Sets[n].Disk, now.Sets[n].Call
	}
	s.Asked, s.Restored = s.Asked && s.API.Alive.Deleting, s.API.Alive.Started
	s.Runners = [2]Runner{}
	s.takeOver(0)
}

func (w World) runnerFaults(s State, n int, add adder) {
	r := s.Runners[n]
	add(false, "a runner is killed", func(s *State) {
		if r.On && s.Left.Crashes > 0 {
			s.Left.Crashes--
			s.begin(n)
		}
	})
	add(true, "a late watch catches up", func(s *State) { s.Runners[n].Late = None })
	for late := Signals; late <= Services; late++ {
		if late == Services && !w.Service {
			continue
		}
		add(false, "a watch is late", func(s *State) {
			if r.On && r.Late == None && s.Left.Stalls > 0 {
				s.Left.Stalls--
				s.Runners[n].Late = late
			}
		})
	}
}

func (w World) provisionerFaults(add adder) {
	add(false, "a call takes more than two minutes", func(s *State) {
		if set := &s.API.Sets[0]; s.Left.SlowCalls > 0 && set.Call != NoCall {
			s.Left.SlowCalls--
			set.Slow = true
		}
	})
	add(false, "the provisioner is killed", func(s *State) {
		set := &s.API.Sets[0]
		if s.Left.ProvisionerDies > 0 && set.Call != NoCall && set.Claim.Phase != NoClaim && !set.Claim.Deleting {
			s.Left.ProvisionerDies--
			set.Call = NoCall
		}
	})
}
