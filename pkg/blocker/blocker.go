package blocker

import (
	"iter"
	"slices"
	"time"
)

// Object names an object of the API. UID is "" if the object was not read.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	// Group is the API group of the kind, for text output.
	Group string `json:"-"`
}

// String returns Kind name, or Kind namespace/name.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Source is where a piece of evidence was read.
type Source string

// The sources of evidence.
const (
	FromField         Source = "field"
	FromAnnotation    Source = "annotation"
	FromEvent         Source = "event"
	FromLease         Source = "lease"
	FromCondition     Source = "condition"
	FromWorkload      Source = "workload"
	FromManagedFields Source = "managedFields"
	FromProbe         Source = "probe"
	FromList          Source = "list"
)

// Evidence is one fact that was read in the cluster.
type Evidence struct {
	Source Source `json:"source"`
	Text   string `json:"text"`
}

// Blocker is one thing that the deletion of an object waits for. Blockers form a tree.
type Blocker struct {
	// Object is the object that has to go or to change. Where the deletion waits for a
	// controller, it is the object that carries the finalizer.
	Object Object `json:"object"`
	// Finalizer is the finalizer of the waiting object that this blocker keeps, or "".
	Finalizer string `json:"finalizer"`
	Reason    Reason `json:"reason"`
	// Holder is who has to act: a controller with its workload or Lease, a driver, a user; or "".
	Holder  string  `json:"holder"`
	Verdict Verdict `json:"verdict"`
	// Since is the time, in RFC 3339, since when the blocker blocks, or "" if unknown.
	Since    string     `json:"since"`
	Evidence []Evidence `json:"evidence"`
	// Next is the next step for the user, as lines that can be pasted into a shell: commands, and
	// sentences as comments (# ...). What loses something is a comment too.
	Next string `json:"next"`
	// Blockers is what this blocker waits for itself.
	Blockers []Blocker `json:"blockers"`
}

// Report is the answer for one object.
type Report struct {
	Object  Object  `json:"object"`
	Verdict Verdict `json:"verdict"`
	// Since is the time, in RFC 3339, since when the object waits: that of its deletion, or of the release
	// of a volume. "" if it does not wait.
	Since string `json:"since"`
	// Deadline is nil if the object was not deleted, or without a grace period.
	Deadline *Deadline `json:"deadline"`
	Blockers []Blocker `json:"blockers"`
	// Incomplete names what could not be read, and which right would allow to read it.
	Incomplete []string `json:"incomplete"`
}

// Normalized returns the blocker with empty lists instead of nil, for the JSON output, no evidence twice, and
// with the worst verdict of its own blockers.
func (b Blocker) Normalized() Blocker {
	b.Evidence = distinct(b.Evidence)
	b.Blockers = normalizedAll(b.Blockers)
	if len(b.Blockers) > 0 {
		b.Verdict = max(b.Verdict, Worst(b.Blockers))
	}
	return b
}

// distinct returns the evidence without repetitions: controllers of which any one may act are looked for alike.
func distinct(all []Evidence) []Evidence {
	once := []Evidence{}
	for _, one := range all {
		if !slices.Contains(once, one) {
			once = append(once, one)
		}
	}
	return once
}

// Normalized returns the report with empty lists instead of nil.
func (r Report) Normalized() Report {
	r.Blockers = normalizedAll(r.Blockers)
	if r.Incomplete == nil {
		r.Incomplete = []string{}
	}
	return r
}

func normalizedAll(blockers []Blocker) []Blocker {
	all := make([]Blocker, len(blockers))
	for i, blocker := range blockers {
		all[i] = blocker.Normalized()
	}
	return all
}

// Roots iterates over the root blockers: those that wait for nothing else, worst first
// within each branch.
func Roots(blockers []Blocker) iter.Seq[Blocker] {
	return func(yield func(Blocker) bool) { roots(blockers, yield) }
}

func roots(blockers []Blocker, yield func(Blocker) bool) bool {
	for _, blocker := range blockers {
		if len(blocker.Blockers) > 0 {
			if !roots(blocker.Blockers, yield) {
				return false
			}
			continue
		}
		if !yield(blocker) {
			return false
		}
	}
	return true
}

// Time returns the time as Since has it, "" for the zero time.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
