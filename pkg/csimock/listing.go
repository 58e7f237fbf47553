package csimock

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// tokenPrefix is the prefix of a page token. The sequence of the last record of the
// previous page follows.
const tokenPrefix = "after-"

// window is the requested part of a listing.
type window struct {
	after uint64 // the sequence that the page comes after
	limit int    // how many entries it may have; 0 is all
}

// parseWindow reads the paging fields of a request. last is the highest sequence in a valid
// token; CSI requires Aborted for every other token.
func parseWindow(token string, limit int32, last uint64) (window, error) {
	if limit < 0 {
		return window{}, status.Errorf(codes.InvalidArgument, "max_entries must not be negative, got %d", limit)
	}
	if token == "" {
		return window{limit: int(limit)}, nil
	}
	digits, found := strings.CutPrefix(token, tokenPrefix)
	after, err := strconv.ParseUint(digits, 10, 64)
	if !found || err != nil || after > last {
		return window{}, status.Errorf(codes.Aborted, "starting_token %q is not one of this listing", token)
	}
	return window{after: after, limit: int(limit)}, nil
}

// page returns the records in the window and the token of the next page, empty if the next
// page is empty. Changes before the window do not shift the page.
func page[T interface{ record() *Record }](sorted []T, w window) ([]T, string) {
	start := slices.IndexFunc(sorted, func(item T) bool { return item.record().Sequence > w.after })
	if start < 0 {
		return nil, ""
	}
	rest := sorted[start:]
	if w.limit == 0 || len(rest) <= w.limit {
		return rest, ""
	}
	last := rest[w.limit-1].record().Sequence
	return rest[:w.limit], tokenPrefix + strconv.FormatUint(last, 10)
}

// ListVolumes returns a page of all volumes, oldest first.
func (s *controllerServer) ListVolumes(_ context.Context,
	request *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	s.store.Lock()
	defer s.store.Unlock()
	wanted, err := parseWindow(request.GetStartingToken(), request.GetMaxEntries(), s.store.sequence)
	if err != nil {
		return nil, err
	}
	volumes, next := page(s.store.volumes.sorted(), wanted)
	response := &csi.ListVolumesResponse{NextToken: next}
	for _, v := range volumes {
		response.Entries = append(response.Entries, &csi.ListVolumesResponse_Entry{
			Volume: s.describe(v),
			Status: &csi.ListVolumesResponse_VolumeStatus{
				PublishedNodeIds: v.nodes(),
			},
		})
	}
	return response, nil
}

// ListSnapshots returns a page of all matching snapshots, oldest first.
func (s *controllerServer) ListSnapshots(_ context.Context,
	request *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	s.store.Lock()
	defer s.store.Unlock()
	wanted, err := parseWindow(request.GetStartingToken(), request.GetMaxEntries(), s.store.sequence)
	if err != nil {
		return nil, err
	}
	matching := slices.DeleteFunc(s.store.snapshots.sorted(), func(snapshot *Snapshot) bool {
		return !snapshot.matches(request)
	})
	snapshots, next := page(matching, wanted)
	response := &csi.ListSnapshotsResponse{NextToken: next}
	for _, snapshot := range snapshots {
		response.Entries = append(response.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: s.describeSnapshot(snapshot)})
	}
	return response, nil
}

// matches reports whether the snapshot matches the request.
func (s *Snapshot) matches(request *csi.ListSnapshotsRequest) bool {
	id, source := request.GetSnapshotId(), request.GetSourceVolumeId()
	return (id == "" || id == s.ID) && (source == "" || source == s.Volume)
}
