package graph

import (
	"slices"
	"strings"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/garbage"
	names "github.com/exeunt-io/exeunt/pkg/garbage/reference"
)

// node is an object, or an owner that was never observed or is gone. Each field counts: a
// cluster has a million of them.
type node struct {
	uid types.UID
	// name of an owner that was not observed is that of a reference to it.
	name, version string
	namespace     unique.Handle[string]
	// kind is nil unless the object is observed.
	kind       *Kind
	references []reference
	dependents map[*node]struct{}
	// owner is nil unless something is known of the object as an owner.
	owner *ownership
	// matching is the number of dependents with a reference to these coordinates, blocking
	// that of those that block the deletion.
	matching, blocking int32
	flags              flags
	// foregroundIndex and orphanIndex are the places of the finalizers in their list.
	foregroundIndex, orphanIndex uint8
}

// flags of a node.
type flags uint8

const (
	deleting flags = 1 << iota
	foreground
	orphan
	missing
	sent
)

// policy are the flags that decide what becomes of the dependents.
const policy = deleting | foreground | orphan

// reference is an owner reference.
type reference struct {
	owner *node
	kind  unique.Handle[schema.GroupVersionKind]
	name  string
	// blocks: blockOwnerDeletion is true.
	blocks bool
}

// namesKind reports whether the reference names the kind.
func (r *reference) namesKind(kind schema.GroupKind) bool {
	return names.Names(r.kind.Value().GroupKind(), kind)
}

// kindOf returns the kind that an owner reference names; one of a group that nobody can serve, and not the core
// group, if its apiVersion is none.
func kindOf(r *metav1.OwnerReference) schema.GroupVersionKind {
	if gvk, valid := names.KindOf(r.APIVersion, r.Kind); valid {
		return gvk
	}
	return schema.GroupVersionKind{Group: "/" + r.APIVersion, Kind: r.Kind}
}

// apiVersion returns the apiVersion of the reference.
func (r *reference) apiVersion() string {
	gvk := r.kind.Value()
	if invalid, found := strings.CutPrefix(gvk.Group, "/"); found {
		return invalid
	}
	return gvk.GroupVersion().String()
}

// ownership is what is known of an object as an owner.
type ownership struct {
	// absent are coordinates that proved not to have the UID.
	absent []Coordinates
	// aliases are other kinds, and places, under which the object was observed.
	aliases []alias
	// reads are live reads since the last event, one for each place.
	reads []read
	// passed: the graph has seen every kind since epoch began. passedAt is when that was found out, of an orphaning owner.
	passed   bool
	passedAt time.Time
	// epoch counts the changes of the policy.
	epoch uint64
	// deleted is the deletion timestamp.
	deleted time.Time
}

// read is the result of a live read.
type read struct {
	at      Coordinates
	verdict Verdict
	began   time.Time
	// keeps is how long the read of an owner that lives, and is not in the graph, keeps its dependents.
	keeps time.Duration
}

// own returns the ownership of the node, to be written.
func (n *node) own() *ownership {
	if n.owner == nil {
		n.owner = &ownership{}
	}
	return n.owner
}

func (n *node) has(all flags) bool { return n.flags&all == all }

// waits reports whether the object is deleted in the foreground or orphaning.
func (n *node) waits() bool { return n.has(deleting) && n.flags&(foreground|orphan) != 0 }

// inForeground reports whether the object is deleted in the foreground only.
func (n *node) inForeground() bool { return n.flags&policy == deleting|foreground }

func (n *node) coordinates() Coordinates {
	return n.identity().coordinates()
}

// isAt reports whether the node is observed as the object of the kind with its name and namespace.
func (n *node) isAt(kind *Kind, object metav1.Object) bool {
	return n.kind == kind && n.name == object.GetName() && n.namespace.Value() == object.GetNamespace()
}

func (n *node) passed() bool { return n.owner != nil && n.owner.passed }

func (n *node) isAbsentAt(at Coordinates) bool {
	return n.owner != nil && slices.Contains(n.owner.absent, at)
}

// counts returns whether a reference of the dependent names the coordinates of the owner, and
// whether such a reference blocks the owner's deletion.
func (n *node) counts(dependent *node) (matches, blocks bool) {
	if n.kind == nil {
		return false, false
	}
	for i := range dependent.references {
		if r := &dependent.references[i]; r.owner == n && n.isNamedBy(r, dependent) {
			matches, blocks = true, blocks || r.blocks
		}
	}
	return matches, blocks
}

// isNamedBy reports whether the reference of the dependent names an identity of the owner.
func (n *node) isNamedBy(r *reference, dependent *node) bool {
	return n.identity().isNamedBy(r, dependent) ||
		slices.ContainsFunc(n.aliases(), func(a alias) bool { return a.isNamedBy(r, dependent) })
}

// flagsOf returns the flags of the object, and the places of its finalizers.
func flagsOf(object metav1.Object) (f flags, foregroundIndex, orphanIndex uint8) {
	if object.GetDeletionTimestamp() != nil {
		f |= deleting
	}
	finalizers := object.GetFinalizers()
	if i := slices.Index(finalizers, metav1.FinalizerDeleteDependents); i >= 0 {
		f, foregroundIndex = f|foreground, indexByte(i)
	}
	if i := slices.Index(finalizers, metav1.FinalizerOrphanDependents); i >= 0 {
		f, orphanIndex = f|orphan, indexByte(i)
	}
	return f, foregroundIndex, orphanIndex
}

// indexByte returns the index, which a patch tests, as a byte. No object has 255 finalizers.
func indexByte(i int) uint8 { return uint8(min(i, 255)) }

// Verdict is the verdict on an owner reference.
type Verdict int

// The verdicts: see package garbage.
const (
	Unverified Verdict = iota
	Unresolvable
	Live
	Absent
	Waiting
	Orphaning
)

// verdictOf returns the verdict on an owner that was read live.
func verdictOf(object metav1.Object) Verdict {
	f, _, _ := flagsOf(object)
	switch {
	case f&deleting == 0:
		return Live
	case f&orphan != 0:
		return Orphaning
	case f&foreground != 0:
		return Waiting
	}
	return Live
}

// add adds the verdict to the state.
func (v Verdict) add(s *garbage.State) {
	switch v {
	case Unresolvable:
		s.Unresolvable = true
	case Live:
		s.Live = true
	case Absent:
		s.Absent = true
	case Waiting:
		s.Waiting = true
	case Orphaning:
		s.Orphaning = true
	case Unverified:
		s.Unverified = true
	}
}
