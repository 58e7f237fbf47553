package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/exeunt-io/exeunt/pkg/audit/verdict"
)

// Driver is the part of a CSI driver that an audit calls.
type Driver interface {
	Name() string
	// ListsVolumes reports whether the driver has the capability LIST_VOLUMES.
	ListsVolumes() bool
	ListVolumes(context.Context, *spec.ListVolumesRequest) (*spec.ListVolumesResponse, error)
	// ListsSnapshots reports whether the driver has the capability LIST_SNAPSHOTS.
	ListsSnapshots() bool
	ListSnapshots(context.Context, *spec.ListSnapshotsRequest) (*spec.ListSnapshotsResponse, error)
	ValidateVolumeCapabilities(context.Context,
		*spec.ValidateVolumeCapabilitiesRequest) (*spec.ValidateVolumeCapabilitiesResponse, error)
}

// Volume is one volume of the storage system.
type Volume struct {
	Handle string
	// Name is the requested name, "" if unknown.
	Name string
	// driverName is the name that the driver lists, if a file has another, or "".
	driverName string
	// Size is in bytes, 0 if unknown.
	Size int64
	// Created is the time of creation, or Age the age as the file has it; empty if unknown.
	Created time.Time
	Age     string
	// Attached: the volume is published to a node.
	Attached bool
	// Source is the handle of the volume that this volume was cloned from, or "".
	Source   string
	Context  map[string]string
	topology []*spec.Topology
}

// lister lists the volumes of a storage system.
type lister interface {
	// list calls begin before the first volume, and again when it starts over.
	list(ctx context.Context, begin func(), visit func(Volume)) error
}

// pageSize is the number of entries that are requested in one page, of volumes and of
// objects.
const pageSize = 500

// maxEmptyPages is the number of empty pages in a row after which a list is wrong.
const maxEmptyPages = 100

// driverLister lists the volumes of a CSI driver.
type driverLister struct{ driver Driver }

// list starts over once if the driver does not accept its own page token any more, as the
// CSI specification says.
func (l driverLister) list(ctx context.Context, begin func(), visit func(Volume)) error {
	err := l.listOnce(ctx, begin, visit)
	if status.Code(errors.Unwrap(err)) == codes.Aborted {
		err = l.listOnce(ctx, begin, visit)
	}
	return err
}

func (l driverLister) listOnce(ctx context.Context, begin func(), visit func(Volume)) error {
	begin()
	pages := pageCheck{seen: set{}, tokens: set{}}
	request := &spec.ListVolumesRequest{MaxEntries: pageSize}
	for {
		page, err := l.driver.ListVolumes(ctx, request)
		if err != nil {
			return fmt.Errorf("ListVolumes failed after %d volumes: %w", len(pages.seen), err)
		}
		if err := pages.add(page); err != nil {
			return fmt.Errorf("ListVolumes answers wrongly after %d volumes: %w", len(pages.seen), err)
		}
		for _, entry := range page.GetEntries() {
			visit(volumeOf(entry))
		}
		if request.StartingToken = page.GetNextToken(); request.StartingToken == "" {
			return nil
		}
	}
}

// volumeOf returns the volume of an entry.
func volumeOf(entry *spec.ListVolumesResponse_Entry) Volume {
	volume := entry.GetVolume()
	return Volume{
		Handle: volume.GetVolumeId(), Name: verdict.Name(volume.GetVolumeId(), volume.GetVolumeContext()),
		Size: volume.GetCapacityBytes(), Context: volume.GetVolumeContext(),
		Attached: len(entry.GetStatus().GetPublishedNodeIds()) > 0,
		Source:   volume.GetContentSource().GetVolume().GetVolumeId(),
		topology: volume.GetAccessibleTopology(),
	}
}

// pageCheck finds errors in the pages of one list.
type pageCheck struct {
	seen, tokens set
	empty        int
}

// add returns the first error in the next page.
func (p *pageCheck) add(page *spec.ListVolumesResponse) error {
	if count := len(page.GetEntries()); count > pageSize {
		return fmt.Errorf("a page has %d entries, at most %d were requested", count, pageSize)
	}
	for _, entry := range page.GetEntries() {
		if err := p.addEntry("volume", entry.GetVolume().GetVolumeId()); err != nil {
			return err
		}
	}
	if token := page.GetNextToken(); token != "" {
		return p.addToken(token, len(page.GetEntries()))
	}
	return nil
}

// addEntry returns the error in the next entry, a volume or a snapshot.
func (p *pageCheck) addEntry(kind, id string) error {
	switch {
	case id == "":
		return fmt.Errorf("an entry has no %s ID", kind)
	case p.seen.has(id):
		return fmt.Errorf("%s %q is listed twice", kind, id)
	}
	p.seen.add(id)
	return nil
}

// addToken returns the error in the token of a page with that many entries.
func (p *pageCheck) addToken(token string, entries int) error {
	if p.empty++; entries > 0 {
		p.empty = 0
	}
	switch {
	case p.tokens.has(token):
		return fmt.Errorf("page token %q is repeated", token)
	case p.empty > maxEmptyPages:
		return fmt.Errorf("%d pages in a row are empty", p.empty)
	}
	p.tokens.add(token)
	return nil
}

// A volume without a known name (unnamed) may be the volume that a claim, a journal entry or
// an attachment of the driver names.

// attaches reports whether a VolumeAttachment may be about the volume.
func (r *references) attaches(volume Volume, unnamed bool) bool {
	return unnamed && r.anyAttached || len(r.unknownAttached) > 0 || r.attached.has(volume.Handle) ||
		volume.isIn(r.attachedNames)
}

// leavesUnresolved reports whether an unresolved or unreadable journal entry may be about
// the volume.
func (r *references) leavesUnresolved(volume Volume, unnamed bool) bool {
	return r.unreadable || unnamed && r.anyUnresolved ||
		volume.isIn(r.unresolvedTexts) || volume.names(&r.unresolved)
}

// creates reports whether a claim or a journal entry may be about the volume.
func (r *references) creates(volume Volume, unnamed bool) bool {
	return unnamed && r.anyInFlight ||
		volume.isIn(r.entryTexts) || volume.names(&r.entries) || volume.names(&r.claims)
}

// isIn reports whether the texts have the handle or a name of the volume.
func (v Volume) isIn(texts set) bool {
	return texts.has(v.Handle) || texts.has(v.Name) || texts.has(v.driverName)
}

// names reports whether handle, name or context of the volume name one of the claims.
func (v Volume) names(claims *verdict.Claims) bool {
	if claims.Named(v.Handle) || claims.Named(v.Name) {
		return true
	}
	for _, value := range v.Context {
		if claims.Named(value) {
			return true
		}
	}
	return false
}
