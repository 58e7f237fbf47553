package csimock

import (
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
)

// WrongResponse is a scripted error in the response to a successful CreateVolume: the
// volume exists, but the response describes it wrongly.
type WrongResponse string

const (
	// NoID: the volume ID is empty.
	NoID WrongResponse = "no-id"
	// LongID: the volume ID has 1000 bytes. DeleteVolume accepts the long ID too.
	LongID WrongResponse = "long-id"
	// OtherID: the volume ID is that of the oldest volume.
	OtherID WrongResponse = "other-id"
	// TooSmall: the capacity is one byte.
	TooSmall WrongResponse = "too-small"
	// OtherTopology: the accessible topology was not requested.
	OtherTopology WrongResponse = "other-topology"
	// NoSource: the content source is missing.
	NoSource WrongResponse = "no-source"
)

var wrongResponses = []WrongResponse{NoID, LongID, OtherID, TooSmall, OtherTopology, NoSource}

// apply returns the response with the error.
func (w WrongResponse) apply(response any, d *Driver) any {
	created, ok := response.(*csi.CreateVolumeResponse)
	if w == "" || !ok {
		return response
	}
	wrong, ok := proto.Clone(created).(*csi.CreateVolumeResponse)
	if !ok {
		return response
	}
	switch volume := wrong.GetVolume(); w {
	case NoID:
		volume.VolumeId = ""
	case LongID:
		volume.VolumeId = d.aliases.add(volume.GetVolumeId())
	case OtherID:
		volume.VolumeId = d.oldestID()
	case TooSmall:
		volume.CapacityBytes = 1
	case OtherTopology:
		for _, topology := range volume.GetAccessibleTopology() {
			for key := range topology.GetSegments() {
				topology.Segments[key] = "nowhere"
			}
		}
	case NoSource:
		volume.ContentSource = nil
	}
	return wrong
}

// aliases maps the long IDs in wrong responses to volume IDs.
type aliases struct {
	mu  sync.Mutex
	ids map[string]string
}

// add returns a long ID for the volume ID.
func (a *aliases) add(id string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ids == nil {
		a.ids = map[string]string{}
	}
	alias := id + strings.Repeat("x", 1000-len(id))
	a.ids[alias] = id
	return alias
}

// resolve returns the volume ID of a long ID, or the ID itself.
func (a *aliases) resolve(id string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if own, found := a.ids[id]; found {
		return own
	}
	return id
}

// oldestID returns the ID of the oldest volume, "" without volumes.
func (d *Driver) oldestID() string {
	d.store.Lock()
	defer d.store.Unlock()
	for _, volume := range d.store.volumes.sorted() {
		return volume.ID
	}
	return ""
}
