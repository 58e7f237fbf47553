package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/server"
)

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

// disk is a volume in the storage system.
type disk struct{ name, handle string }

// NewLab returns an empty lab.
func NewLab() *Lab {
	return &Lab{
		machines: map[string]*process.Machine{}, slotOf: map[server.Key]slotID{}, objects: make([]server.Object, 1),
		idOf:  map[server.Object]objectID{},
		disks: make([]disk, 1), diskOf: map[disk]diskID{}, served: map[string]outcome{}, requests: map[askedFor]int32{},
		texts: map[string]string{},
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

// one returns one copy of equal texts.
func (l *Lab) one(text string) string {
	if first, known := l.texts[text]; known {
		return first
	}
	l.texts[text] = text
	return text
}

func (l *Lab) handles(disks []diskID) []string {
	var handles []string
	for _, id := range disks {
		handles = append(handles, l.disks[id].handle)
	}
	return handles
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
