package capacity

import "fmt"

// Action is the next step for one item.
type Action int

const (
	// Wait changes nothing.
	Wait Action = iota
	// Ask calls GetCapacity and decides again.
	Ask
	// Create creates the object.
	Create
	// Update writes the driver's answer and the owner into the object.
	Update
	// Remove deletes every object of the item.
	Remove
	// RemoveExtra deletes every object of the item except the oldest.
	RemoveExtra
)

// String returns the name of the action.
func (a Action) String() string {
	switch a {
	case Wait:
		return "Wait"
	case Ask:
		return "Ask"
	case Create:
		return "Create"
	case Update:
		return "Update"
	case Remove:
		return "Remove"
	case RemoveExtra:
		return "RemoveExtra"
	}
	return fmt.Sprintf("Action(%d)", int(a))
}

// Count is the number of objects of an item.
type Count int

const (
	// None: the item has no object.
	None Count = iota
	// One: the item has one object.
	One
	// Several: the item has more objects, which would confuse the scheduler.
	Several
)

// String returns the name of the count.
func (c Count) String() string {
	switch c {
	case None:
		return "None"
	case One:
		return "One"
	case Several:
		return "Several"
	}
	return fmt.Sprintf("Count(%d)", int(c))
}

// CountOf returns the count of the number of objects.
func CountOf(objects int) Count {
	return Count(min(objects, int(Several)))
}

// State is what the controller observed of one item.
type State struct {
	// Wanted: the segment and the storage class exist.
	Wanted bool
	// Objects is the number of objects of the item.
	Objects Count
	// Known: the driver answered since the last reason to ask.
	Known bool
	// Same: the object has the driver's answer.
	Same bool
	// Owned: the object has its owner reference.
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
