package status

import (
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/internal/enum"
)

// The names under which both sets of loops write.
const (
	ourLoops       = "pv-controller"
	upstreamsLoops = "kube-controller-manager"
)

// upstreamsManagers are the names under which upstream's loops write: that of the program they are
// compiled into, which is another one in k3s and MicroK8s.
var upstreamsManagers = []string{upstreamsLoops, "k3s", "kubelite"}

// recent is how long two writers count as at once.
const recent = 10 * time.Minute

// phaseWriters is who wrote phases of volumes and claims.
type phaseWriters int

const (
	writersNone phaseWriters = iota
	writersOurs
	writersUpstream
	// writersSwitched: both wrote a short time ago, one after the other.
	writersSwitched
	// writersBoth: both wrote a short time ago, in turn.
	writersBoth
)

// String returns the name of the value.
func (w phaseWriters) String() string {
	return enum.Name(w, "none", ourLoops, upstreamsLoops, "switched", "both")
}

// evidence says who wrote phases.
func (w phaseWriters) evidence() []string {
	switch w {
	case writersBoth:
		return []string{"pv-controller and kube-controller-manager wrote phases in turn within the last 10 minutes"}
	case writersSwitched:
		return []string{"both wrote phases within the last 10 minutes, one after the other, as in a switch"}
	case writersOurs, writersUpstream:
		return []string{w.String() + " wrote a phase last"}
	case writersNone:
	}
	return []string{}
}

// phaseWrite is the last write of a loop to an object whose phase it wrote.
type phaseWrite struct {
	at   time.Time
	ours bool
}

// phaseWriteOf returns who wrote status.phase of the object, and false if it was neither set
// of loops. Other fields of the status belong to the expander and the resizer.
func phaseWriteOf(fields []metav1.ManagedFieldsEntry) (phaseWrite, bool) {
	for _, entry := range fields {
		known := entry.Manager == ourLoops || slices.Contains(upstreamsManagers, entry.Manager)
		if known && entry.Time != nil && entry.FieldsV1 != nil && hasPhase(entry.FieldsV1.GetRawBytes()) {
			return phaseWrite{entry.Time.Time, entry.Manager == ourLoops}, true
		}
	}
	return phaseWrite{}, false
}

// hasPhase reports whether the set of fields has status.phase.
func hasPhase(fields []byte) bool {
	var set struct {
		Status struct {
			Phase *struct{} `json:"f:phase"`
		} `json:"f:status"`
	}
	return json.Unmarshal(fields, &set) == nil && set.Status.Phase != nil
}

// writersOf returns who wrote phases: in the last minutes, else last. Times have a precision
// of one second, so writes of the same second tell no order.
func writersOf(writes []phaseWrite, now time.Time) phaseWriters {
	if len(writes) == 0 {
		return writersNone
	}
	slices.SortStableFunc(writes, func(a, b phaseWrite) int { return a.at.Compare(b.at) })
	last := writes[len(writes)-1]
	fresh := slices.DeleteFunc(slices.Clone(writes), func(w phaseWrite) bool { return now.Sub(w.at) > recent })
	ours := slices.ContainsFunc(fresh, func(w phaseWrite) bool { return w.ours })
	upstream := slices.ContainsFunc(fresh, func(w phaseWrite) bool { return !w.ours })
	switch {
	case ours && upstream && inTurn(fresh):
		return writersBoth
	case ours && upstream:
		return writersSwitched
	case last.ours:
		return writersOurs
	}
	return writersUpstream
}

// inTurn reports whether each set of loops wrote after the other: no single moment separates
// the writes of one from those of the other.
func inTurn(sorted []phaseWrite) bool {
	var first, last [2]time.Time
	for _, write := range sorted {
		i := 0
		if write.ours {
			i = 1
		}
		if first[i].IsZero() {
			first[i] = write.at
		}
		last[i] = write.at
	}
	return first[0].Before(last[1]) && first[1].Before(last[0])
}
