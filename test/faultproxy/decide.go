package faultproxy

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Fault is an injected fault.
type Fault struct {
	Time    time.Time
	Program string
	Kind    Kind
	Verb    string
	// Resource is GROUP/RESOURCE/SUBRESOURCE without empty parts, or the path of a request
	// without resource.
	Resource        string
	Namespace, Name string
	// Ordinal counts the requests with the same verb, resource, selectors, namespace and name.
	Ordinal int
	// Tick of the watch in which the fault happened, from 1.
	Tick int
	// Delay is how long the fault lasts.
	Delay time.Duration
	// Version is the version that a stale list returns.
	Version string
}

// decider makes the decisions.
type decider struct {
	program string
	seed    uint64
	leases  []string
	// maxDelay bounds every delay.
	maxDelay time.Duration
	choose   func(Fault) Kind

	mu       sync.Mutex
	rates    Rates
	ordinals map[string]int
}

// decision is what happens to one request.
type decision struct {
	fault Fault
	// random decides about the watch.
	random *rand.Rand
	lease  bool
	// fraction from 0 to 1 chooses among former versions.
	fraction float64
}

// setRates replaces the rates.
func (d *decider) setRates(rates Rates) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rates = rates.clone()
}

// rate returns the rate of kind.
func (d *decider) rate(kind Kind, lease bool) float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if lease {
		return d.rates.Leases[kind]
	}
	return d.rates.Faults[kind]
}

// next returns the ordinal of a request.
func (d *decider) next(key string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	ordinal := d.ordinals[key]
	d.ordinals[key]++
	return ordinal
}

// decide chooses the fault of a request. Without a fault the Kind is empty.
func (d *decider) decide(r *request) *decision {
	key := r.key()
	ordinal := d.next(key)
	random := source(fmt.Sprintf("%d %s %d %s", d.seed, d.program, ordinal, key))
	made := &decision{
		random: random,
		lease:  r.resource == "leases" && (len(d.leases) == 0 || slices.Contains(d.leases, r.name)),
		fault: Fault{
			Program: d.program, Verb: r.verb, Resource: r.title(), Namespace: r.namespace, Name: r.name, Ordinal: ordinal,
		},
	}
	d.draw(made, requestKinds, r.allows)
	made.fraction = random.Float64()
	if d.choose != nil {
		if kind := d.choose(made.fault); r.allows(kind) {
			made.fault.Kind = kind
		}
	}
	return made
}

// draw chooses one of the kinds. The number of draws is the same for all rates, so that
// the rate of one kind does not change the decisions about another.
func (d *decider) draw(made *decision, kinds []Kind, allowed func(Kind) bool) {
	made.fault.Kind = ""
	for _, kind := range kinds {
		if made.random.Float64() < d.rate(kind, made.lease) && made.fault.Kind == "" && allowed(kind) {
			made.fault.Kind = kind
		}
	}
	made.fault.Delay = 0
	delay := time.Duration(made.random.Float64() * float64(d.maxDelay))
	if hasDelay(made.fault.Kind) {
		made.fault.Delay = delay
	}
}

// hasDelay reports whether the fault lasts.
func hasDelay(kind Kind) bool {
	return slices.Contains([]Kind{DelayRequest, DelayAnswer, SlowList, Outage, WatchStall}, kind)
}

// source returns random numbers that depend on text only.
func source(text string) *rand.Rand {
	sum := sha256.Sum256([]byte(text))
	return rand.New(rand.NewPCG(binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:])))
}
