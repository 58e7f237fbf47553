package mutant

import (
	"cmp"
	"maps"
	"slices"
)

// Equivalent returns why no test can kill the mutant, "" for other mutants.
func (m Mutant) Equivalent() string {
	return cmp.Or(equivalents[m.Key()], gracefulEquivalents[m.Key()])
}

// Equivalents returns the keys of the mutants of the core that no test can kill, in order.
func Equivalents() []string { return slices.Sorted(maps.Keys(equivalents)) }

// equivalents are the mutants that differ from the program in no state that exists, by
// [Mutant.Key].
var equivalents = map[string]string{
	"pkg/journal/lease.go KindOf: condition dropped: err != nil becomes false": "the name of a Lease of the journal is compared as a whole afterwards, " +
		"and ends in the number that was parsed",
	"pkg/patch/patch.go IsStale: condition dropped: !errors.As(err, &status) becomes false": "an error that is Invalid has a status",
	"pkg/binding/match.go isBetter: bound moved: order < 0 becomes order <= 0":              "the order is not 0 here",
	"pkg/binding/match.go isBetter: bound moved: a.Name < b.Name becomes a.Name <= b.Name":  "two volumes never have one name",
	"pkg/reclaim/plugin/decide.go decideRecycler: action swapped: Decision{Wait, RecyclerPodUnfinished} becomes DeleteVolume": "decideRecycle has returned " +
		"for an unfinished pod before",
	"pkg/reclaim/plugin/decide.go decideRecycler: action swapped: Decision{Wait, RecyclerPodUnfinished} becomes RemoveFinalizer": "decideRecycle has returned " +
		"for an unfinished pod before",

	"pkg/pvcontroller/protection/controller.go Reconcile: action swapped: protection.DecideClaim(state) (place 2) becomes protection.UnprotectClaim": "only a " +
		"deleted and protected claim is confirmed, and here no pod uses it: the decision is UnprotectClaim",
}

// gracefulEquivalents are those of graceful deletion and of node termination, which have sets of their own.
var gracefulEquivalents = map[string]string{
	"pkg/deadline/deadline.go Tighten: condition dropped: err != nil becomes false":                              "a text that is no time reads as the year 1, which is stale",
	"internal/gracestorage/deletion.go keepPlain: condition dropped: d.kind == graceful.Plain becomes true":      "restore has set the timestamp of any other deletion, and a live object is removed without a write",
	"internal/gracestorage/write.go namesSeconds: condition dropped: !errors.As(err, &status) becomes false":     "an error that is Invalid has a status",
	"internal/gracestorage/write.go request: condition dropped: w.before.kind == graceful.Live becomes false":    "Decide takes Earlier and NotEarlier of a live object alike",
	"internal/gracestorage/write.go request: condition dropped: w.before.kind == graceful.Graceful becomes true": "only a deadline can be earlier: Decide takes both alike without one",
	"internal/gracestorage/write.go seconds: case removed: seconds == nil becomes false":                         "only the seconds of a request that names them are read",
	"internal/gracestorage/write.go seconds: bound moved: *seconds < 0 becomes *seconds <= 0":                    "0 is force, which has no deadline",
	"internal/window/window.go Serve: case removed: !deleted becomes false":                                      "an absent time is no time, which parse refuses",
}
