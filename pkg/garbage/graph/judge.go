package graph

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/garbage"
)

// ReadLifetime is how long the live read of an owner that waits or orphans is good for: a
// user may change the policy of a deletion at any time.
const ReadLifetime = time.Second

// Question is a live read that a judgement needs.
type Question struct {
	Owner types.UID
	Kind  *Kind
	At    Coordinates
	// Version is that of the owner in the graph, "" if it is not there.
	Version string
	// Withdrawn: the kind is not served any more, and the owner was absent before. A path that is not served confirms
	// this.
	Withdrawn bool
}

// Object returns the owner as the graph has it.
func (q Question) Object() Object {
	return Object{UID: q.Owner, Kind: q.Kind, Namespace: q.At.Namespace, Name: q.At.Name, Version: q.Version}
}

// Object is an object as the graph has it.
type Object struct {
	UID                      types.UID
	Kind                     *Kind
	Namespace, Name, Version string
	// marks are those of the graph when the object was judged.
	marks uint64
}

// Coordinates returns where the object is stored.
func (o Object) Coordinates() Coordinates {
	return Coordinates{GroupKind: o.Kind.GroupKind(), Namespace: o.Namespace, Name: o.Name}
}

// Judgement is the state of an object, and what the execution of a decision on it needs.
type Judgement struct {
	Object
	State garbage.State
	// Questions are the reads of unverified owners.
	Questions []Question
	// Remove are the places of references to absent and orphaning owners, and to waiting ones if another owner lives, in
	// order.
	Remove []int
	// Expires is when the first live read of an owner expires; zero if the judgement rests on none.
	Expires time.Time
	// Unproven are the reads of absent owners that were not read live within [ReadLifetime]. They come before a write.
	Unproven []Question
	// Unseen are the deletions without a barrier: the object's own, or those of its owners.
	Unseen []types.UID
	// Recheck is when to judge the object again: a live owner is not in the graph, so that no event tells when it is
	// gone. Zero if none is.
	Recheck time.Time
	// Displaced are owners in another namespace than the reference implies.
	Displaced []Displaced
	// ForegroundIndex and OrphanIndex are the places of the finalizers.
	ForegroundIndex, OrphanIndex int
}

// OwnersAt returns the owners that the object names at the places.
func (g *Graph) OwnersAt(uid types.UID, places []int) []types.UID {
	var owners []types.UID
	if n := g.nodes[uid]; n != nil {
		for _, i := range places {
			if i < len(n.references) {
				owners = append(owners, n.references[i].owner.uid)
			}
		}
	}
	return owners
}

// Displaced is a reference to an owner of another namespace.
type Displaced struct {
	Owner                  types.UID
	APIVersion, Kind, Name string
}

// Judge returns the judgement of the object at the time, false if the graph does not have it.
func (g *Graph) Judge(uid types.UID, now time.Time) (Judgement, bool) {
	n := g.nodes[uid]
	if n == nil || n.kind == nil {
		return Judgement{}, false
	}
	j := Judgement{Object: n.object(), ForegroundIndex: int(n.foregroundIndex), OrphanIndex: int(n.orphanIndex)}
	j.marks = g.marks
	j.State = garbage.State{
		Missing: n.has(missing), Sent: n.has(sent), Deleting: n.has(deleting),
		Foreground: n.has(foreground), Orphan: n.has(orphan),
		Dependents: n.matching > 0, Blocking: n.blocking > 0, Seen: true,
	}
	for i := range n.references {
		g.judgeReference(&j, n, i, now)
	}
	if j.State.Live && !n.has(deleting) && (j.State.Waiting || n.hasOwnerInForeground()) {
		g.proveLive(&j, n, now)
	}
	g.keepWaiting(&j, n, now)
	if n.has(deleting) {
		j.State.Seen, j.Unseen = n.passedLately(now), nil
		if !j.State.Seen {
			j.Unseen = []types.UID{n.uid}
		}
	}
	return j, true
}

// judgeReference adds the verdict on a reference to the judgement.
func (g *Graph) judgeReference(j *Judgement, n *node, i int, now time.Time) {
	r := &n.references[i]
	if n.has(deleting) && !(r.owner.has(deleting | orphan)) {
		return // it is being deleted, whatever its owners do
	}
	verdict, question := g.verdict(n, r, now)
	verdict.add(&j.State)
	switch verdict {
	case Unverified:
		j.Questions = append(j.Questions, question)
	case Absent:
		j.Remove = append(j.Remove, i)
		j.addProof(r.owner, question, now)
	case Waiting, Orphaning:
		j.Remove = append(j.Remove, i)
		proof, _ := r.owner.readAt(question.At, now)
		j.limit(proof.began.Add(ReadLifetime))
	case Live:
		if r.owner.kind == nil {
			j.recheckAfter(r.owner.lastRead(question.At))
		}
	case Unresolvable:
	}
	j.addUnseen(verdict, r)
	j.addDisplaced(n, r)
}

// addProof adds the live read that proved the absence of an owner, or has it read. What is remembered may be older
// than a restore of etcd, which brought the owner back.
func (j *Judgement) addProof(owner *node, q Question, now time.Time) {
	if q.Kind == nil {
		return // no object can have the name
	}
	if proof, has := owner.readAt(q.At, now); has && proof.verdict == Absent {
		j.limit(proof.began.Add(ReadLifetime))
		return
	}
	j.Unproven = append(j.Unproven, q)
}

// proveLive lets only owners that were just read count as live: the object blocks the owners that wait, and no
// longer does once it has another that lives. The graph may be behind the end of that one.
func (g *Graph) proveLive(j *Judgement, n *node, now time.Time) {
	j.State.Live = false
	for i := range n.references {
		r := &n.references[i]
		verdict, question := g.verdict(n, r, now)
		if verdict != Live {
			continue
		}
		if proof, has := r.owner.readAt(question.At, now); has && proof.verdict == Live {
			j.State.Live = true
			j.limit(proof.began.Add(ReadLifetime))
			continue
		}
		j.State.Unverified = true
		j.Questions = append(j.Questions, question)
	}
}

// keepWaiting leaves the references to owners that wait, unless another owner keeps the object.
func (g *Graph) keepWaiting(j *Judgement, n *node, now time.Time) {
	if !j.State.Waiting || j.State.Live {
		return
	}
	j.Remove = slices.DeleteFunc(j.Remove, func(i int) bool {
		verdict, _ := g.verdict(n, &n.references[i], now)
		return verdict == Waiting
	})
}

// recheckAfter has the object judged again when the read no longer keeps it.
func (j *Judgement) recheckAfter(found read) {
	if at := found.began.Add(max(found.keeps, ReadLifetime)); j.Recheck.IsZero() || at.Before(j.Recheck) {
		j.Recheck = at
	}
}

// limit sets when the judgement expires, at the latest.
func (j *Judgement) limit(expires time.Time) {
	if j.Expires.IsZero() || expires.Before(j.Expires) {
		j.Expires = expires
	}
}

// addUnseen adds the owner of the reference if it waits and has not passed a barrier.
func (j *Judgement) addUnseen(verdict Verdict, r *reference) {
	if verdict == Waiting && !r.owner.passed() {
		j.State.Seen = false
		j.Unseen = append(j.Unseen, r.owner.uid)
	}
}

// addDisplaced adds the owner of the reference if it is in another namespace.
func (j *Judgement) addDisplaced(n *node, r *reference) {
	if r.owner.kind != nil && r.owner.kind.Namespaced && r.owner.namespace != n.namespace {
		j.Displaced = append(j.Displaced, Displaced{r.owner.uid, r.apiVersion(), r.kind.Value().Kind, r.name})
	}
}

// verdict returns the verdict on a reference of the object, and what to read for a live one.
func (g *Graph) verdict(n *node, r *reference, now time.Time) (Verdict, Question) {
	kind := g.named(r)
	if kind == nil {
		return g.verdictOfWithdrawn(n, r)
	}
	switch {
	case kind.Namespaced && !n.kind.Namespaced:
		return Unresolvable, Question{}
	// No object can have the name. A request for it would go elsewhere, and what answers there speak for the owner.
	case len(content.IsPathSegmentName(r.name)) > 0:
		return Absent, Question{}
	}
	at := Coordinates{GroupKind: kind.GroupKind(), Name: r.name}
	if kind.Namespaced {
		at.Namespace = n.namespace.Value()
	}
	return r.owner.verdictAt(at, now), Question{Owner: r.owner.uid, Kind: kind, At: at, Version: r.owner.version}
}

// verdictOfWithdrawn returns the verdict on an owner whose kind is not served. The owner may have been absent while
// its kind, of whatever scope, was served: the kind of a definition is withdrawn soon after its last object is gone.
func (g *Graph) verdictOfWithdrawn(dependent *node, r *reference) (Verdict, Question) {
	if r.owner.owner == nil {
		return Unresolvable, Question{}
	}
	for _, at := range r.owner.owner.absent {
		kind := g.withdrawn[at.GroupKind]
		if kind != nil && r.name == at.Name && r.namesKind(at.GroupKind) &&
			(at.Namespace == "" || at.Namespace == dependent.namespace.Value()) {
			return Absent, Question{Owner: r.owner.uid, Kind: kind, At: at, Withdrawn: true}
		}
	}
	return Unresolvable, Question{}
}

// verdictAt returns the verdict on the owner at the coordinates.
func (n *node) verdictAt(at Coordinates, now time.Time) Verdict {
	switch {
	case n.isAbsentAt(at):
		return Absent
	case n.isObservedAt(at) && !n.waits() && !n.has(missing):
		return Live
	}
	found, has := n.readAt(at, now)
	if has || n.kind == nil && found.verdict == Live && now.Sub(found.began) < found.keeps {
		return found.verdict
	}
	return Unverified
}

// readAt returns the live read of the owner at the coordinates, unless it has expired.
func (n *node) readAt(at Coordinates, now time.Time) (read, bool) {
	found := n.lastRead(at)
	return found, !found.began.IsZero() && now.Sub(found.began) < ReadLifetime
}

// lastRead returns the last live read of the owner at the coordinates, which may have expired; zero if there is none.
func (n *node) lastRead(at Coordinates) read {
	if n.owner != nil {
		for _, found := range n.owner.reads {
			if found.at == at {
				return found
			}
		}
	}
	return read{}
}

// Read records the live read of an owner that exists at the coordinates. A read that an event has overtaken
// is no verdict.
func (g *Graph) Read(owner types.UID, at Coordinates, live metav1.Object, began time.Time) {
	n := g.nodes[owner]
	if n != nil && n.isAbsentAt(at) { // etcd was restored, or the event DELETED a mistake
		n.owner.absent = slices.DeleteFunc(n.owner.absent, func(absent Coordinates) bool { return absent == at })
		g.changeDependents(n)
	}
	if n == nil || n.kind != nil && n.coordinates() == at && n.version != live.GetResourceVersion() {
		return
	}
	added := read{at: at, verdict: verdictOf(live), began: began}
	if n.kind == nil && added.verdict == Live {
		added.keeps = max(g.virtualLifetime, min(2*n.lastRead(at).keeps, maxVirtual*g.virtualLifetime))
	}
	n.addRead(added)
}

// maxVirtual is how many times longer than the first one the later reads of an owner that is not in the graph keep
// its dependents.
const maxVirtual = 32

// SetVirtualLifetime sets how long the first live read of an owner that is not in the graph keeps its dependents.
// Each further read keeps them twice as long as the one before, up to a limit: nothing is deleted because an owner
// lives.
func (g *Graph) SetVirtualLifetime(lifetime time.Duration) { g.virtualLifetime = lifetime }

// ReadAbsent records the live read of an owner that is not at the coordinates, beside [Graph.Deleted].
func (g *Graph) ReadAbsent(owner types.UID, at Coordinates, began time.Time) {
	if n := g.nodes[owner]; n != nil && n.isAbsentAt(at) {
		n.addRead(read{at: at, verdict: Absent, began: began})
	}
}

// addRead adds a read in the place of former ones at the same coordinates, and forgets those that have expired.
func (n *node) addRead(added read) {
	own := n.own()
	own.reads = slices.DeleteFunc(own.reads, func(r read) bool {
		return r.at == added.at || added.began.Sub(r.began) >= max(ReadLifetime, 2*r.keeps)
	})
	own.reads = append(own.reads, added)
}

// Sent records that the deletion of this version of the object was accepted.
func (g *Graph) Sent(uid types.UID, version string) {
	if n := g.nodes[uid]; n != nil && n.kind != nil && n.version == version {
		n.flags |= sent
	}
}

// Epoch returns the epoch of an owner for [Graph.Passed], its namespace, and false if the
// graph does not know of it. An owner that was not observed counts as cluster-scoped.
func (g *Graph) Epoch(uid types.UID) (epoch uint64, namespace string, found bool) {
	n := g.nodes[uid]
	if n == nil {
		return 0, "", false
	}
	if n.owner != nil {
		epoch = n.owner.epoch
	}
	if n.kind != nil {
		namespace = n.namespace.Value()
	}
	return epoch, namespace, true
}

// HasPassed reports whether the graph has seen every kind since the present epoch of the owner began, and lately if
// that releases its dependents.
func (g *Graph) HasPassed(uid types.UID, now time.Time) bool {
	n := g.nodes[uid]
	return n != nil && n.passedLately(now)
}

// PassLifetime is how long an orphaning owner may be released after it passed. If etcd was restored since, its
// dependents have their references again, and would be garbage.
const PassLifetime = 5 * time.Second

// passedLately reports whether the owner has passed, and within [PassLifetime] if the removal of the finalizer orphan
// is next.
func (n *node) passedLately(now time.Time) bool {
	return n.passed() && (!n.has(orphan) || n.matching > 0 || now.Sub(n.owner.passedAt) < PassLifetime)
}

// Passed records that the graph has every kind as of a read that began in the epoch of the
// owner. Owner and dependents are judged again.
func (g *Graph) Passed(uid types.UID, epoch uint64, now time.Time) {
	if n := g.nodes[uid]; n != nil && (n.owner == nil && epoch == 0 || n.owner != nil && n.owner.epoch == epoch) {
		n.own().passed = true
		if n.has(orphan) {
			n.owner.passedAt = now
		}
		g.change(n)
		g.changeDependents(n)
	}
}

func (n *node) object() Object {
	return Object{UID: n.uid, Kind: n.kind, Namespace: n.namespace.Value(), Name: n.name, Version: n.version}
}
