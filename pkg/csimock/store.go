package csimock

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"sync"
)

// store is the state of the driver. Handlers hold the lock from the first read to the last
// change, so that each call is atomic.
type store struct {
	sync.Mutex
	// version counts changes; the state file compares it with the saved version.
	version uint64
	// sequence is the sequence of the newest record.
	sequence  uint64
	volumes   catalog[*Volume]
	snapshots catalog[*Snapshot]
	groups    catalog[*Group]
	// used is the sum of the capacities of all volumes, in bytes.
	used int64
	// attached counts the volumes published to each node.
	attached map[string]int64
	// health are the conditions of the storage backend.
	health []Condition
}

// newStore returns an empty store.
func newStore() *store {
	return &store{
		version:   1,
		volumes:   newCatalog[*Volume](),
		snapshots: newCatalog[*Snapshot](),
		groups:    newCatalog[*Group](),
		attached:  map[string]int64{},
	}
}

// newRecord returns a new record. Its ID has the kind, the sequence, which is unique in
// this store, and random digits, which differ from the IDs of a lost store.
func (s *store) newRecord(kind, name string) Record {
	s.sequence++
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails: crypto/rand ends the program instead
	return Record{
		ID:       fmt.Sprintf("%s-%06d-%s", kind, s.sequence, hex.EncodeToString(random[:])),
		Name:     name,
		Sequence: s.sequence,
	}
}

// addVolume adds a volume and takes its capacity from the pool.
func (s *store) addVolume(v *Volume) {
	s.volumes.add(v)
	s.used += v.Capacity
	for node := range v.Published {
		s.attached[node]++
	}
	s.version++
}

// removeVolume removes a volume and returns its capacity to the pool.
func (s *store) removeVolume(v *Volume) {
	s.volumes.remove(v)
	s.used -= v.Capacity
	s.version++
}

// resizeVolume changes the capacity of a volume to the given bytes.
func (s *store) resizeVolume(v *Volume, capacity int64) {
	s.used += capacity - v.Capacity
	v.Capacity = capacity
	s.version++
}

// findVolume returns the volume with the ID or name, nil for none.
func (s *store) findVolume(volume string) *Volume {
	if found, known := s.volumes.byID[volume]; known {
		return found
	}
	return s.volumes.byName[volume]
}

// publishVolume records that the volume is published to a new node.
func (s *store) publishVolume(v *Volume, node string, p Publication) {
	put(&v.Published, node, p)
	s.attached[node]++
	s.version++
}

// unpublishVolume records that the volume is no longer published to the node.
func (s *store) unpublishVolume(v *Volume, node string) {
	delete(v.Published, node)
	s.attached[node]--
	s.version++
}

// modifyVolume sets mutable parameters and keeps the others.
func (s *store) modifyVolume(v *Volume, parameters map[string]string) {
	for key, value := range parameters {
		put(&v.Mutable, key, value)
	}
	s.version++
}

// stageVolume records that the volume is staged at a path.
func (s *store) stageVolume(v *Volume, path string, a Access) {
	put(&v.Staged, path, a)
	s.version++
}

// unstageVolume records that the volume is no longer staged at a path.
func (s *store) unstageVolume(v *Volume, path string) {
	delete(v.Staged, path)
	s.version++
}

// publishTarget records that the volume is published at a target path.
func (s *store) publishTarget(v *Volume, path string, p Publication) {
	put(&v.Targets, path, p)
	s.version++
}

// unpublishTarget records that the volume is no longer published at a target
// path.
func (s *store) unpublishTarget(v *Volume, path string) {
	delete(v.Targets, path)
	s.version++
}

// addSnapshot adds a snapshot.
func (s *store) addSnapshot(snapshot *Snapshot) {
	s.snapshots.add(snapshot)
	s.version++
}

// removeSnapshot removes a snapshot.
func (s *store) removeSnapshot(snapshot *Snapshot) {
	s.snapshots.remove(snapshot)
	s.version++
}

// addGroup adds a group. Its snapshots are added before.
func (s *store) addGroup(g *Group) {
	s.groups.add(g)
	s.version++
}

// removeGroup removes a group and its snapshots.
func (s *store) removeGroup(g *Group) {
	for _, id := range g.Snapshots {
		s.snapshots.remove(s.snapshots.byID[id])
	}
	s.groups.remove(g)
	s.version++
}

// put sets a key of a map that may be nil.
func put[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = value
}
