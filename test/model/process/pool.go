package process

import "time"

// poolSize bounds the actors that wait for another input, poolAge for how long: time passes
// for all of them when it passes for one.
const (
	poolSize = 500
	poolAge  = 100 * time.Millisecond
)

// pool has actors in states where they may be needed again.
type pool struct {
	actors map[State]pooled
	order  []State
}

type pooled struct {
	*actor
	since time.Time
}

// put keeps the actor; it ends the oldest one if there are too many.
func (p *pool) put(state State, a *actor) {
	if former, known := p.actors[state]; known {
		former.end()
	} else {
		p.order = append(p.order, state)
	}
	p.actors[state] = pooled{a, time.Now()}
	for len(p.order) > poolSize {
		if oldest, known := p.actors[p.order[0]]; known {
			oldest.end()
			delete(p.actors, p.order[0])
		}
		p.order = p.order[1:]
	}
}

// take returns an actor in the state, nil if there is none.
func (p *pool) take(state State) *actor {
	found, known := p.actors[state]
	if !known {
		return nil
	}
	delete(p.actors, state)
	if time.Since(found.since) > poolAge {
		found.end()
		return nil
	}
	return found.actor
}

func (p *pool) end() {
	for _, a := range p.actors {
		a.end()
	}
	p.actors, p.order = map[State]pooled{}, nil
}
