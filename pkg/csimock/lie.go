package csimock

import (
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
)

// Lie is a wrong answer to a CreateVolume that succeeded: there is a volume, and
// the caller is told something else about it.
type Lie string

const (
	// NoID: it has no ID.
	NoID Lie = "no-id"
	// LongID: its ID has 1000 bytes; DeleteVolume knows it by that ID too.
	LongID Lie = "long-id"
	// OtherID: its ID is that of the oldest volume.
	OtherID Lie = "other-id"
	// TooSmall: it has a capacity of one byte.
	TooSmall Lie = "too-small"
	// Elsewhere: it is reachable from a place that nobody asked for.
	Elsewhere Lie = "elsewhere"
	// NoSource: it was not made from what was asked for.
	NoSource Lie = "no-source"
)

var knownLies = []Lie{NoID, LongID, OtherID, TooSmall, Elsewhere, NoSource}

// tell returns the answer as the lie has it.
func (l Lie) tell(response any, d *Driver) any {
	created, ok := response.(*csi.CreateVolumeResponse)
	if l == "" || !ok {
		return response
	}
	lied, ok := proto.Clone(created).(*csi.CreateVolumeResponse)
	if !ok {
		return response
	}
	switch volume := lied.GetVolume(); l {
	case NoID:
		volume.VolumeId = ""
	case LongID:
		volume.VolumeId = d.aliases.give(volume.GetVolumeId())
	case OtherID:
		volume.VolumeId = d.oldest()
	case TooSmall:
		volume.CapacityBytes = 1
	case Elsewhere:
		for _, place := range volume.GetAccessibleTopology() {
			for key := range place.GetSegments() {
				place.Segments[key] = "nowhere"
			}
		}
	case NoSource:
		volume.ContentSource = nil
	}
	return lied
}

// aliases are the long IDs that were told.
type aliases struct {
	mu    sync.Mutex
	given map[string]string
}

func (a *aliases) give(id string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.given == nil {
		a.given = map[string]string{}
	}
	alias := id + strings.Repeat("x", 1000-len(id))
	a.given[alias] = id
	return alias
}

// of returns the ID behind an alias, or the ID itself.
func (a *aliases) of(id string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if own, known := a.given[id]; known {
		return own
	}
	return id
}

// oldest returns the ID of the oldest volume.
func (d *Driver) oldest() string {
	d.store.Lock()
	defer d.store.Unlock()
	for _, volume := range d.store.volumes.sorted() {
		return volume.ID
	}
	return ""
}
