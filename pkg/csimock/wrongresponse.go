package csimock

import (
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
)

// WrongResponse is a scripted error in the response to a successful call: CreateVolume
// describes an existing volume wrongly, or a page of ListVolumes is wrong.
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
	// MissingEntry: a page of ListVolumes lacks its first volume.
	MissingEntry WrongResponse = "missing-entry"
	// DuplicateEntry: a page of ListVolumes has its first volume twice.
	DuplicateEntry WrongResponse = "duplicate-entry"
	// RepeatToken: the token of the next page of ListVolumes leads to the first page.
	RepeatToken WrongResponse = "repeat-token"
)

// wrongResponses are the wrong responses of each method.
var wrongResponses = map[string][]WrongResponse{
	"CreateVolume": {NoID, LongID, OtherID, TooSmall, OtherTopology, NoSource},
	"ListVolumes":  {MissingEntry, DuplicateEntry, RepeatToken},
}

// apply returns the response with the error.
func (w WrongResponse) apply(response any, d *Driver) any {
	if list, ok := response.(*csi.ListVolumesResponse); ok {
		return w.applyToList(list)
	}
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
		volume.VolumeId = lengthen(volume.GetVolumeId())
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
	case MissingEntry, DuplicateEntry, RepeatToken: // of ListVolumes
	}
	return wrong
}

// applyToList returns the page with the error.
func (w WrongResponse) applyToList(page *csi.ListVolumesResponse) *csi.ListVolumesResponse {
	entries := page.GetEntries()
	switch {
	case w == RepeatToken:
		return &csi.ListVolumesResponse{Entries: entries, NextToken: tokenPrefix + "0"}
	case len(entries) == 0:
		return page
	case w == MissingEntry:
		entries = entries[1:]
	case w == DuplicateEntry:
		entries = append(slices.Clone(entries), entries[0])
	}
	return &csi.ListVolumesResponse{Entries: entries, NextToken: page.GetNextToken()}
}

// longID is the length of the long IDs in wrong responses. The ID of a volume is followed by so many x, a letter with which
// no ID ends.
const longID = 1000

// lengthen returns a long ID for the volume ID.
func lengthen(id string) string {
	return id + strings.Repeat("x", longID-len(id))
}

// resolve returns the volume ID of a long ID, or the ID itself.
func resolve(id string) string {
	if len(id) != longID {
		return id
	}
	return strings.TrimRight(id, "x")
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
