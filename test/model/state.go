package model

import (
	"encoding/binary"

	"github.com/exeunt-io/exeunt/test/model/process"
)

// objectID numbers a version of an API object; 0 is none.
type objectID int32

// State is a state of the whole world. It is not changed after its creation.
type State struct {
	// objects are the API objects by slot.
	objects []objectID
	// older are versions that some cache has yet to see, by slot, the oldest first.
	older [][]objectID
	disks []diskID
	// deleted, kept and givenUp are disks as [check.Snapshot] has them.
	deleted, kept, givenUp []diskID
	instances              []instance
	// done are the users' actions that have been taken, as bits.
	done uint64
	// crashes, losses, errors and hours are what may still go wrong, and how often time may
	// still pass. wrongAnswers are how often the answer of the driver may still be wrong, switches how often a gate may
	// still be switched. interruptions are how often a pass may still be interrupted, -1 for any
	// number; stalls are how often a watch may still stall, -1 for caches that always may be stale.
	// oldLists are how often a program may still start with an old list.
	crashes, losses, errors, hours, wrongAnswers, switches, interruptions, stalls, oldLists int8
	// stalled is the watch that stalls.
	stalled stalledWatch
	// delays are how often a write may still take effect late, delayed is the write that may.
	delays  int8
	delayed delayedWrite
	// denials and undos are how often a webhook may still deny a write, or take back its change.
	denials, undos int8
	// restores are how often etcd may still be restored from the backup, backups how often a backup may still be taken.
	restores, backups int8
	// backup are the API objects of the backup. filled are the disks that were there when etcd was restored.
	backup []objectID
	filled []diskID
	// current is the number of the program whose pass goes on, plus one; 0 for none.
	current int8
}

// instance is a program in a state.
type instance struct {
	// local is what the program remembers, caches and has in flight; process.Off if it does not run.
	local process.State
	// former is the process that led before and has not ended its last pass.
	former process.State
	// terms counts the leaders that the program has had.
	terms int32
	// present is what the steps of the running process rest on, past that of the former leader.
	present, past basis
	// seen are the versions that the caches show, by slot.
	seen []objectID
	// switched: the gate HonorPVReclaimPolicy is not that of the configuration.
	switched bool
}

// slotID numbers the name of an API object.
type slotID int

// diskID numbers a volume in the storage system.
type diskID int32

// basis are the API objects that the steps of a process rest on.
type basis struct {
	// read are the API objects as the pass has read them live, the others as they were at its
	// first live read; nil for none.
	read []objectID
	// sent are the API objects when the open call to the storage system was sent, nil for none.
	sent []objectID
}

// process returns the running process, or the former leader.
func (i *instance) process(former bool) (process.State, *basis) {
	if former {
		return i.former, &i.past
	}
	return i.local, &i.present
}

// stalledWatch is a watch that delivers nothing.
type stalledWatch struct {
	// program is the number of the program plus one, 0 for no watch.
	program, slot int8
}

func (w stalledWatch) is(program int, slot slotID) bool {
	return int(w.program) == program+1 && int(w.slot) == int(slot)
}

// delayedWrite is a write whose sender got no answer, and which the API server may execute later.
type delayedWrite struct {
	// program is the number of the program plus one, 0 for no write.
	program int8
	// request is the number of the request.
	request uint16
}

// clone returns a copy whose slices can be changed.
func (s *State) clone() *State {
	c := *s
	c.objects = append([]objectID(nil), s.objects...)
	c.older = append([][]objectID(nil), s.older...)
	c.instances = append([]instance(nil), s.instances...)
	return &c
}

// see records that the caches of an instance show a version.
func (s *State) see(program int, slot slotID, object objectID) {
	seen := append([]objectID(nil), s.instances[program].seen...)
	for len(seen) <= int(slot) {
		seen = append(seen, 0)
	}
	seen[slot] = object
	s.instances[program].seen = seen
}

// at returns the element, zero beyond the end.
func at[T any](list []T, i int) T {
	var none T
	if i < 0 || i >= len(list) {
		return none
	}
	return list[i]
}

// key returns a text that two states share if and only if they are equal.
func (s *State) key() string {
	b := make([]byte, 0, 128)
	b = appendIDs(b, s.objects)
	b = binary.AppendUvarint(b, uint64(len(s.older)))
	for _, versions := range s.older {
		b = appendIDs(b, versions)
	}
	b = appendIDs(b, s.backup)
	for _, disks := range [][]diskID{s.disks, s.deleted, s.kept, s.givenUp, s.filled} {
		b = appendIDs(b, disks)
	}
	for _, i := range s.instances {
		b = binary.AppendUvarint(b, uint64(i.local))
		b = binary.AppendUvarint(b, uint64(i.former))
		b = binary.AppendUvarint(b, uint64(i.terms)<<1|uint64(bits(i.switched)))
		b = appendIDs(b, i.seen)
		for _, ids := range [][]objectID{i.present.read, i.present.sent, i.past.read, i.past.sent} {
			b = appendIDs(b, ids)
		}
	}
	b = binary.AppendUvarint(b, s.done)
	return string(append(b, byte(s.crashes), byte(s.losses), byte(s.errors), byte(s.hours), byte(s.wrongAnswers),
		byte(s.switches),
		byte(s.interruptions), byte(s.stalls), byte(s.current), byte(s.stalled.program), byte(s.stalled.slot),
		byte(s.oldLists),
		byte(s.delays), byte(s.delayed.program), byte(
			s.delayed.request>>8,
		), byte(s.delayed.request), byte(s.denials), byte(s.undos),
		byte(s.restores), byte(s.backups)))
}

func bits(set bool) byte {
	if set {
		return 1
	}
	return 0
}

func appendIDs[T ~int32](b []byte, ids []T) []byte {
	for len(ids) > 0 && ids[len(ids)-1] == 0 {
		ids = ids[:len(ids)-1]
	}
	b = binary.AppendUvarint(b, uint64(len(ids)))
	for _, id := range ids {
		b = binary.AppendUvarint(b, uint64(id))
	}
	return b
}

// parse returns the state with the key.
func parse(key string, programs int) *State {
	r := reader{b: []byte(key)}
	s := &State{objects: readIDs[objectID](&r)}
	s.older = make([][]objectID, r.next())
	for i := range s.older {
		s.older[i] = readIDs[objectID](&r)
	}
	s.backup = readIDs[objectID](&r)
	for _, disks := range []*[]diskID{&s.disks, &s.deleted, &s.kept, &s.givenUp, &s.filled} {
		*disks = readIDs[diskID](&r)
	}
	for range programs {
		i := instance{local: process.State(r.next()), former: process.State(r.next())}
		terms := r.next()
		i.terms, i.switched = int32(terms>>1), terms&1 != 0
		i.seen = readIDs[objectID](&r)
		for _, ids := range []*[]objectID{&i.present.read, &i.present.sent, &i.past.read, &i.past.sent} {
			*ids = readIDs[objectID](&r)
		}
		s.instances = append(s.instances, i)
	}
	s.done = r.next()
	s.crashes, s.losses, s.errors, s.hours = int8(r.b[0]), int8(r.b[1]), int8(r.b[2]), int8(r.b[3])
	s.wrongAnswers, s.switches = int8(r.b[4]), int8(r.b[5])
	s.interruptions, s.stalls, s.current = int8(r.b[6]), int8(r.b[7]), int8(r.b[8])
	s.stalled, s.oldLists = stalledWatch{program: int8(r.b[9]), slot: int8(r.b[10])}, int8(r.b[11])
	s.delays, s.delayed = int8(r.b[12]),
		delayedWrite{program: int8(r.b[13]), request: uint16(r.b[14])<<8 | uint16(r.b[15])}
	s.denials, s.undos = int8(r.b[16]), int8(r.b[17])
	s.restores, s.backups = int8(r.b[18]), int8(r.b[19])
	return s
}

// reader reads a key.
type reader struct{ b []byte }

func (r *reader) next() uint64 {
	value, length := binary.Uvarint(r.b)
	r.b = r.b[length:]
	return value
}

func readIDs[T ~int32](r *reader) []T {
	ids := make([]T, r.next())
	for i := range ids {
		ids[i] = T(r.next())
	}
	return ids
}
