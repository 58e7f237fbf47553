package provision

// Decide returns the next step for the volume of one claim. It is total and pure.
// A hold is let go by two cases only: the volume is recorded, or there is none.
func Decide(s State) Decision {
	switch {
	case s.Known == Recorded:
		return decideRecorded(s)
	case s.Asked == Made:
		return decideMade(s)
	case s.Open() && (s.Asked != Perhaps || s.Want != Unserved):
		return ask(s, OutcomeUnknown)
	}
	return decideSettled(s)
}

// decideRecorded leaves everything else to whoever binds and reclaims.
func decideRecorded(s State) Decision {
	if s.Held && s.Want == Unwanted {
		return Decision{LetGo, VolumeRecorded}
	}
	return Decision{Wait, VolumeRecorded}
}

// decideMade ends in a PersistentVolume or in a DeleteVolume, the latter only after
// a look at the API server: the volume may be recorded, and a cache be late.
func decideMade(s State) Decision {
	switch {
	case s.Want == Wanted && s.Known == Absent:
		return Decision{Save, VolumeWanted}
	case s.Read != BothRead:
		return Decision{ReadBoth, VolumeUnwanted}
	}
	return Decision{Discard, VolumeUnwanted}
}

// decideSettled serves a claim of which the storage system has no volume.
func decideSettled(s State) Decision {
	switch {
	case s.Want == Unwanted && s.Held:
		return Decision{LetGo, NothingMade}
	case s.Want == Unwanted:
		return Decision{Wait, NothingMade}
	case s.Want == Unserved:
		return Decision{Wait, NotWanted}
	case s.Want == Misplaced:
		return Decision{Reschedule, NodeUnfit}
	case s.Known == Impostor && s.Read != BothRead:
		return Decision{ReadBoth, NameTaken}
	case s.Known == Impostor:
		return Decision{Wait, NameTaken}
	}
	return ask(s, VolumeWanted)
}

// ask takes the steps up to CreateVolume: nothing is asked for a claim that could
// vanish meanwhile, or that a late cache takes for one that wants a volume. A claim
// that is being deleted cannot be held any more; then this process remembers it.
func ask(s State, reason Reason) Decision {
	switch {
	case s.Prepared == Unprepared:
		return Decision{Prepare, reason}
	case s.Prepared != Ready:
		return decideRefused(s)
	case s.Holds && !s.Held && s.Want != Unwanted:
		return Decision{Hold, reason}
	case s.Read == Cached:
		return Decision{ReadClaim, reason}
	}
	return Decision{Ask, reason}
}

// decideRefused holds no claim for which nothing was asked and nothing can be.
func decideRefused(s State) Decision {
	if s.Held && !s.Open() && s.Asked != Failed {
		return Decision{LetGo, RequestRefused}
	}
	return Decision{Wait, RequestRefused}
}

// After returns what is known of the volume once the driver has answered with an
// error, of which the outcome is known, and what was known before. That there is no
// volume is believed if it is said twice of a claim that no longer wants one, for
// nobody would ask again: drivers fail with codes that promise too much.
func After(outcome Outcome, want Want, before Asked) Asked {
	switch {
	case outcome == Unknown:
		return Pending
	case want != Unwanted:
		return Failed
	case before != Denied:
		return Denied
	}
	return Settled
}
