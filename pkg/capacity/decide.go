package capacity

// Action is the one thing to do next for an item.
type Action int

const (
	// Wait changes nothing.
	Wait Action = iota
	// Ask calls the driver and decides again.
	Ask
	// Create makes the object.
	Create
	// Update makes the object say what the driver said.
	Update
	// Remove deletes every object of the item.
	Remove
	// RemoveExtra deletes every object of the item but the oldest.
	RemoveExtra
)

// Count is how many objects there are for an item.
type Count int

const (
	// None: there is no object.
	None Count = iota
	// One: there is one object, as it shall be.
	One
	// Several: there are more, which confuses the scheduler.
	Several
)

// CountOf returns the count of so many objects.
func CountOf(objects int) Count {
	return Count(min(objects, int(Several)))
}

// State is what is known of one item.
type State struct {
	// Wanted: there is such a part of the cluster and such a class.
	Wanted bool
	// Objects are how many there are.
	Objects Count
	// Known: the driver has answered since the last reason to ask it.
	Known bool
	// Same: the object says what the driver has answered.
	Same bool
	// Owned: the object has the owner that it shall have.
	Owned bool
}

// Decide returns the next step for one item.
func Decide(s State) Action {
	switch {
	case !s.Wanted && s.Objects == None:
		return Wait
	case !s.Wanted:
		return Remove
	case s.Objects == Several:
		return RemoveExtra
	case !s.Known:
		return Ask
	case s.Objects == None:
		return Create
	case !s.Same || !s.Owned:
		return Update
	}
	return Wait
}
