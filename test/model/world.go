package model

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

// Program is a program of a configuration.
type Program struct {
	// Name is how stories call the program. A lab has one program of a name.
	Name  string
	Build process.Build
	// Loops are the numbers of its loops that run, nil for all.
	Loops []int
	// Caches are the resources that it caches.
	Caches []string
	// Actor is whose rules its writes have.
	Actor check.Actor
	// Honor and Journaled are its gates.
	Honor, Journaled bool
	// Concurrent: its loops work at the same time, one pass each, and CreateVolume may take effect
	// long after its pass began.
	Concurrent bool
}

// machine names the machine that runs the program.
func (p Program) machine() string {
	if p.Concurrent {
		return p.Name + ", concurrent"
	}
	return p.Name
}

// disk is a volume in the storage system.
type disk struct{ name, handle string }

// Lab has what explorations share: the numbers of objects, and what programs did. One
// exploration after the other, in one bubble of testing/synctest, can use it.
type Lab struct {
	machines map[string]*process.Machine

	slots   []server.Key
	slotOf  map[server.Key]slotID
	objects []server.Object
	idOf    map[server.Object]objectID
	disks   []disk
	diskOf  map[disk]diskID
	facts   factCache
	// served has the results of requests, by the objects and the number of the request.
	served   map[string]outcome
	requests map[askedFor]int32
	// requestOf are the requests by their number.
	requestOf []askedFor
	// texts has one copy of each body of a response.
	texts map[string]string
}

// NewLab returns an empty lab.
func NewLab() *Lab {
	return &Lab{
		machines: map[string]*process.Machine{}, slotOf: map[server.Key]slotID{}, objects: make([]server.Object, 1), idOf: map[server.Object]objectID{},
		disks: make([]disk, 1), diskOf: map[disk]diskID{}, served: map[string]outcome{}, requests: map[askedFor]int32{}, texts: map[string]string{},
	}
}

// isLarge reports whether the lab remembers so much that a new one is better for the memory of the
// machine than this one for the time of the next exploration.
func (l *Lab) isLarge() bool { return len(l.served) > 1_000_000 }

// Close ends all processes.
func (l *Lab) Close() {
	for _, machine := range l.machines {
		machine.Close()
	}
}

// world is one configuration in a lab.
type world struct {
	*Lab
	config   Config
	machines []processes
}

// processes are the processes of one program: a [process.Machine], or a [process.Forward].
type processes interface {
	Local(state process.State) *process.Local
	Next(state process.State, input process.Input, text string) (process.State, error)
	Loop(number int) string
}

// outcome is what a request did.
type outcome struct {
	slot     slotID
	now      objectID
	response server.Response
	// plain is the version without what the admission policy added.
	plain objectID
}

func newWorld(lab *Lab, config Config) (*world, error) {
	w := &world{Lab: lab, config: config}
	for _, program := range config.Programs {
		machine, known := lab.machines[program.machine()]
		if !known {
			var err error
			if machine, err = process.NewMachine(program.Build); err != nil {
				return nil, err
			}
			machine.Concurrent = program.Concurrent
			lab.machines[program.machine()] = machine
		}
		w.machines = append(w.machines, machine)
	}
	return w, nil
}

// slot returns the number of a name.
func (l *Lab) slot(key server.Key) slotID {
	slot, known := l.slotOf[key]
	if !known {
		slot = slotID(len(l.slots))
		l.slots, l.slotOf[key] = append(l.slots, key), slot
	}
	return slot
}

// intern returns the number of a version of an object.
func (l *Lab) intern(object server.Object) objectID {
	id, known := l.idOf[object]
	if !known {
		id = objectID(len(l.objects))
		l.objects, l.idOf[object] = append(l.objects, object), id
	}
	return id
}

func (l *Lab) internDisk(d disk) diskID {
	id, known := l.diskOf[d]
	if !known {
		id = diskID(len(l.disks))
		l.disks, l.diskOf[d] = append(l.disks, d), id
	}
	return id
}

// cluster returns the API server of the state.
func (w *world) cluster(s *State) server.Cluster {
	objects := make([]server.Object, 0, len(s.objects))
	for _, id := range s.objects {
		if id != 0 {
			objects = append(objects, w.objects[id])
		}
	}
	return server.NewCluster(objects...)
}

// serve lets the API server answer a request.
func (w *world) serve(s *State, request server.Request) (*State, outcome, error) {
	memo := string(binary.AppendUvarint(appendIDs(nil, s.objects), uint64(w.numberOf(request))))
	result, known := w.served[memo]
	if !known {
		var err error
		if result, err = w.handle(s, request); err != nil {
			return nil, outcome{}, err
		}
		result.response.Body = w.one(result.response.Body)
		w.served[memo] = result
	}
	if result.slot < 0 {
		return s, result, nil
	}
	after := w.put(s, result.slot, result.now)
	if w.objects[result.now].JSON == "" && w.slots[result.slot].Resource == "persistentvolumes" {
		w.volumeGone(s, after, s.objects[result.slot])
	}
	return after, result, nil
}

// one returns one copy of equal texts.
func (l *Lab) one(text string) string {
	if first, known := l.texts[text]; known {
		return first
	}
	l.texts[text] = text
	return text
}

// askedFor is a request in a world with or without the admission policy.
type askedFor struct {
	server.Request
	admission bool
}

// numberOf returns the number of a request.
func (w *world) numberOf(request server.Request) int32 {
	asked := askedFor{request, w.config.Admission}
	number, known := w.requests[asked]
	if !known {
		number = int32(len(w.requests))
		w.requests[asked], w.requestOf = number, append(w.requestOf, asked)
	}
	return number
}

// handle returns what a request does.
func (w *world) handle(s *State, request server.Request) (outcome, error) {
	before := w.cluster(s)
	after, response := before.Serve(request)
	result, changed := outcome{slot: -1, response: response}, changes(before.Objects(), after.Objects())
	if len(changed) > 1 {
		return outcome{}, fmt.Errorf("the request %s %s changed %d objects", request.Method, request.Path, len(changed))
	}
	if len(changed) == 0 {
		return result, nil
	}
	now := changed[0]
	if old, _ := before.Get(now.Key); w.config.Admission {
		if admitted := admit(old, now); admitted != now {
			result.plain = w.intern(now)
			now, result.response.Body = admitted, admitted.Wire()
		}
	}
	result.slot, result.now = w.slot(now.Key), w.intern(now)
	return result, nil
}

// volumeGone records disks that users keep, now that their volume is gone: its policy was not
// Delete, or it was never Bound, and static or without a claim. A disk that its claim has never used
// is given up instead: the claim gets it again, if it still waits.
func (w *world) volumeGone(before, after *State, volume objectID) {
	now := w.snapshot(after)
	last := cached(&w.facts.volumes, volume, func() *v1.PersistentVolume { return decodeAs[v1.PersistentVolume](w.Lab, volume) })
	unused := !storage.PhaseOf(last.Status.Phase).Released() && last.Status.Phase != v1.VolumeBound
	unclaimed := last.Spec.ClaimRef == nil || last.Spec.ClaimRef.UID == ""
	waits := !unclaimed && slices.ContainsFunc(now.Claims, func(claim *v1.PersistentVolumeClaim) bool {
		return claim.UID == last.Spec.ClaimRef.UID && storage.NeverBound(claim)
	})
	for _, handle := range check.Kept(w.snapshot(before), now) {
		if id := w.diskWith(before, handle); waits {
			after.givenUp = union(after.givenUp, id)
		} else {
			after.kept = union(after.kept, id)
		}
	}
	if unused && (unclaimed || !storage.IsDynamic(last)) {
		after.givenUp = union(after.givenUp, w.diskWith(before, check.HandleOf(last)))
	}
}

// changes returns the objects that are new or differ.
func changes(before, after []server.Object) []server.Object {
	return slices.DeleteFunc(slices.Clone(after), func(object server.Object) bool { return slices.Contains(before, object) })
}

// put returns the state with another version of an object. The version before is kept for the
// caches that have not seen it.
func (w *world) put(s *State, slot slotID, now objectID) *State {
	after := s.clone()
	for len(after.objects) <= int(slot) {
		after.objects = append(after.objects, 0)
	}
	for len(after.older) <= int(slot) {
		after.older = append(after.older, nil)
	}
	if before := after.objects[slot]; before != 0 && w.config.EveryVersion {
		after.older[slot] = append(slices.Clone(after.older[slot]), before)
	}
	after.objects[slot] = now
	w.trim(after, slot)
	return after
}

// trim drops the older versions that every running program has seen.
func (w *world) trim(s *State, slot slotID) {
	if !w.config.EveryVersion || len(at(s.older, int(slot))) == 0 || s.oldLists > 0 && w.mayStall(slot) {
		return
	}
	first := len(s.older[slot])
	for i, program := range w.config.Programs {
		if s.instances[i].local == process.Off || !slices.Contains(program.Caches, w.slots[slot].Resource) {
			continue
		}
		first = min(first, w.position(s, i, slot)+1)
	}
	s.older[slot] = s.older[slot][first:]
}

// position returns which of the older versions a program has seen last, -1 for none of them, and
// their number for the present one.
func (w *world) position(s *State, program int, slot slotID) int {
	seen := at(s.instances[program].seen, int(slot))
	if seen == s.objects[slot] {
		return len(s.older[slot])
	}
	return slices.Index(s.older[slot], seen)
}

// unseen returns the versions of a slot that a program can see next.
func (w *world) unseen(s *State, program int, slot slotID) []objectID {
	now := s.objects[slot]
	if now == 0 || at(s.instances[program].seen, int(slot)) == now || !slices.Contains(w.config.Programs[program].Caches, w.slots[slot].Resource) {
		return nil
	}
	versions := []objectID{now}
	if older := at(s.older, int(slot)); len(older) > 0 {
		if next := w.position(s, program, slot) + 1; next < len(older) {
			versions = append(versions, older[next])
		}
	}
	if !w.config.SkipVersions && len(versions) > 1 {
		versions = versions[1:]
	}
	return versions
}

// call lets the storage system create or delete a volume. It reports whether anything changed.
func (w *world) call(s *State, call process.Call) (*State, string, bool) {
	after := s.clone()
	if call.Create != "" {
		for _, id := range s.disks {
			if w.disks[id].name == call.Create {
				return s, w.disks[id].handle, false
			}
		}
		d := disk{name: call.Create, handle: w.newHandle(s, call.Create)}
		after.disks = union(s.disks, w.internDisk(d))
		return after, d.handle, true
	}
	for _, id := range s.disks {
		if w.disks[id].handle == call.Delete {
			after.disks = slices.DeleteFunc(slices.Clone(s.disks), func(other diskID) bool { return other == id })
			after.deleted = union(s.deleted, id)
			return after, "", true
		}
	}
	return s, "", false
}

// newHandle returns the handle of a new disk. Where a late call may delete a disk by its handle, a handle is
// not used again.
func (w *world) newHandle(s *State, name string) string {
	handle := diskPrefix + name
	if !w.config.FormerLeaders {
		return handle
	}
	for slices.ContainsFunc(s.deleted, func(id diskID) bool { return w.disks[id].handle == handle }) {
		handle += "-again"
	}
	return handle
}

// union returns the sorted list with the element.
func union(list []diskID, id diskID) []diskID {
	at, found := slices.BinarySearch(list, id)
	if found {
		return list
	}
	return slices.Insert(slices.Clone(list), at, id)
}

// describe names a version of an object.
func (l *Lab) describe(id objectID) string {
	object := l.objects[id]
	name := strings.TrimPrefix(object.Namespace+"/"+object.Name, "/")
	if object.JSON == "" {
		return fmt.Sprintf("%s %s is gone", object.Resource, name)
	}
	return fmt.Sprintf("%s %s version %d", object.Resource, name, object.Version)
}
