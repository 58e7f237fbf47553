package check

import (
	"slices"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/exeunt-io/exeunt/pkg/journal"
)

// History is the record of a run of real programs: versions of API objects, requests to the
// API server and calls to the storage system. [History.Violations] replays it.
//
// An observer does not see the one true order, so a rule counts as broken only if it is
// broken in every order that fits the record:
//
//   - Versions of API objects are ordered by their resource version: one etcd holds them all.
//     The order in which watches deliver them does not count.
//   - A version was written before it, or any later version, was observed; after the start of
//     a list that did not have it yet ([History.Listed]); and during one of the requests that
//     may have written it.
//   - A call took effect at some moment between its start and its end. Its caller read the
//     objects live at some moment in the time Reach before that, longer if a program was
//     paused meanwhile. The call broke a rule only if it would have at each of these moments.
//   - A version was written by one of the requests for the object whose time fits. A write
//     broke a rule only if it did whoever wrote it. Writes without a known request break none.
//   - A disk exists only from the end of the call that created it to the start of the first
//     call that may have deleted it.
//
// So a broken rule is certain; a rule that the record cannot prove broken is not reported.
type History struct {
	// Reach is the longest time from a live read to the step that rests on it, for a program
	// that is not paused.
	Reach time.Duration
	// Honor and Journaled are gates of our programs, see [Step].
	Honor, Journaled bool
	// Admission: the admission policy adds the provisioner's finalizer to volumes of CSI drivers.
	Admission bool

	versions     []version
	lists        []list
	requests     []Request
	calls        []Record
	pauses       []span
	unobserved   []span
	givenUp      []string
	epoch, sight int
	entries      map[types.NamespacedName]map[types.UID]string
	index        requestIndex
}

// Request is one finished request to the API server.
type Request struct {
	// Actor is the program, "" for a user or an unknown program.
	Actor Actor
	// Resource is the plural name, such as persistentvolumes. Name is "" for a request on
	// a whole namespace.
	Resource, Namespace, Name string
	// Version is the resource version in the response, "" if it is unknown.
	Version string
	// Began and Ended are when the server received the request and when it was finished.
	Began, Ended time.Time

	number int
}

// Record is one finished call to the storage system.
type Record struct {
	// Actor is the program that called, "" for a user.
	Actor Actor
	// Kind is CreateVolume or DeleteVolume.
	Kind Kind
	// Handle is the volume ID of the request or, for CreateVolume, of the created volume,
	// even if the caller got an error; "" for none. Name is the requested name.
	Handle, Name string
	// OK: the caller got no error.
	OK           bool
	Began, Ended time.Time
}

// version is one version of an object, or of one entry of a Lease.
type version struct {
	epoch, sight int
	revision     uint64
	observed     time.Time
	key          objectKey
	gone         bool
	// object is a PersistentVolume, a PersistentVolumeClaim or a Pod; nil for an entry.
	object metav1.Object
	entry  journal.Entry
	// after and before bound the time of the write.
	after, before time.Time
}

// objectKey identifies an object by its name. Lease objects are split into their entries.
type objectKey struct {
	resource, namespace, name string
	entry                     types.UID
}

type list struct {
	epoch    int
	revision uint64
	began    time.Time
}

type span struct{ from, to time.Time }

// Observe adds an event of a watch or an object of a list, as an Added event. Other kinds
// than PersistentVolumes, PersistentVolumeClaims, Pods and Leases are ignored, as are
// bookmarks. The object must not be changed any more.
func (h *History) Observe(at time.Time, event watch.EventType, object any) {
	seen := version{epoch: h.epoch, sight: h.sight, observed: at, gone: event == watch.Deleted}
	if event == watch.Bookmark || event == watch.Error {
		return
	}
	switch object := object.(type) {
	case *v1.PersistentVolume:
		h.add(seen, "persistentvolumes", object)
	case *v1.PersistentVolumeClaim:
		h.add(seen, "persistentvolumeclaims", object)
	case *v1.Pod:
		h.add(seen, "pods", object)
	case *coordinationv1.Lease:
		h.addLease(seen, object)
	}
}

func (h *History) add(seen version, resource string, object metav1.Object) {
	seen.key = objectKey{resource: resource, namespace: object.GetNamespace(), name: object.GetName()}
	seen.object, seen.revision = object, revisionOf(object.GetResourceVersion())
	h.versions = append(h.versions, seen)
}

// addLease adds a version of each entry that changed. The events of one Lease are in order.
func (h *History) addLease(seen version, lease *coordinationv1.Lease) {
	name := types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}
	had, has := h.entries[name], journal.Encoded(lease)
	if seen.gone {
		has = nil
	}
	seen.revision = revisionOf(lease.ResourceVersion)
	seen.key = objectKey{resource: "leases", namespace: lease.Namespace, name: lease.Name}
	for uid, text := range has {
		if entry, err := journal.Decode(uid, text); err == nil && had[uid] != text {
			this := seen
			this.key.entry, this.entry = uid, entry
			h.versions = append(h.versions, this)
		}
	}
	for uid := range had {
		if _, left := has[uid]; !left {
			this := seen
			this.key.entry, this.gone = uid, true
			h.versions = append(h.versions, this)
		}
	}
	if h.entries == nil {
		h.entries = map[types.NamespacedName]map[types.UID]string{}
	}
	h.entries[name] = has
}

// Listed adds the resource version of a consistent list, and when the list was requested:
// every later version was written after that.
func (h *History) Listed(began time.Time, version string) {
	h.lists = append(h.lists, list{epoch: h.epoch, revision: revisionOf(version), began: began})
}

// Resumed says that watches were interrupted, so that versions may be missing: nobody is
// blamed for the next version of an object. With restored, etcd was restored from a
// snapshot, and resource versions may begin anew: what is not observed again is gone.
func (h *History) Resumed(restored bool) {
	h.sight++
	if restored {
		h.epoch++
		h.entries = nil
	}
}

// Requested adds a request that may have written an object. The requests of everybody must
// be added, of users too, unless they ended before the first lists of the observer;
// requests that were refused and reads must not.
func (h *History) Requested(request Request) {
	request.number = len(h.requests)
	h.requests = append(h.requests, request)
}

// Called adds a call to the storage system.
func (h *History) Called(record Record) { h.calls = append(h.calls, record) }

// Paused says that a program did not run for that time and continued afterwards, as after
// SIGSTOP: a step that follows may rest on what was read before.
func (h *History) Paused(from, to time.Time) { h.pauses = append(h.pauses, span{from, to}) }

// Unobserved says that versions of that time may be missing or late: no step of that time is
// judged.
func (h *History) Unobserved(from, to time.Time) {
	h.unobserved = append(h.unobserved, span{from, to})
}

// isUnobserved reports whether versions of that time may be missing.
func (h *History) isUnobserved(from, to time.Time) bool {
	return slices.ContainsFunc(h.unobserved, func(s span) bool { return !s.from.After(to) && !s.to.Before(from) })
}

// GaveUp says that the disk needs no record: see [Snapshot].
func (h *History) GaveUp(handle string) { h.givenUp = append(h.givenUp, handle) }

// readAfter returns the earliest time of a live read of a step that began at that time.
func (h *History) readAfter(began time.Time) time.Time {
	start := began.Add(-h.Reach)
	for range h.pauses { // one pause may lead to an earlier one
		for _, pause := range h.pauses {
			if !pause.from.After(began) && !pause.to.Before(start) && pause.from.Add(-h.Reach).Before(start) {
				start = pause.from.Add(-h.Reach)
			}
		}
	}
	return start
}

// revisionOf returns the number of a resource version, 0 for none.
func revisionOf(version string) uint64 {
	number, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return number
}
