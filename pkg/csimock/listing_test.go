package csimock_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// listed returns the IDs on one page of volumes and the token of the next.
func listed(t *testing.T, driver clients, token string, limit int32) ([]string, string) {
	t.Helper()
	response, err := driver.ListVolumes(t.Context(), &csi.ListVolumesRequest{StartingToken: token, MaxEntries: limit})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, entry := range response.GetEntries() {
		ids = append(ids, entry.GetVolume().GetVolumeId())
	}
	return ids, response.GetNextToken()
}

func TestPagesHoldEveryVolumeOnce(t *testing.T) {
	for limit := int32(0); limit <= 6; limit++ {
		t.Run(fmt.Sprintf("with at most %d on a page", limit), func(t *testing.T) {
			_, driver := start(t, everything())
			var want, got []string
			for i := range 5 {
				want = append(want, create(t, driver, volumeRequest(fmt.Sprintf("volume-%d", i))))
			}
			for token := ""; ; {
				ids, next := listed(t, driver, token, limit)
				got = append(got, ids...)
				if token = next; token == "" {
					break
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("the pages hold %v, want %v", got, want)
			}
		})
	}
}

// csi-sanity has switched off the spec for this: a token survives the deletion of all
// records on its page, and later pages contain new records.
func TestPagesSurviveChanges(t *testing.T) {
	_, driver := start(t, everything())
	for i := range 3 {
		create(t, driver, volumeRequest(fmt.Sprintf("volume-%d", i)))
	}
	all, _ := listed(t, driver, "", 0)
	first, token := listed(t, driver, "", 2)
	for _, id := range first {
		deleteVolume(t, driver, id)
	}
	added := create(t, driver, volumeRequest("added"))
	got, next := listed(t, driver, token, 0)
	if want := []string{all[2], added}; !slices.Equal(got, want) || next != "" {
		t.Errorf("the second page holds %v and goes on at %q, want %v", got, next, want)
	}
}

func TestListSnapshotsFilters(t *testing.T) {
	_, driver := start(t, everything())
	one, two := create(t, driver, volumeRequest("one")), create(t, driver, volumeRequest("two"))
	first, second := takeSnapshot(t, driver, "first", one), takeSnapshot(t, driver, "second", one)
	third := takeSnapshot(t, driver, "third", two)
	for name, tc := range map[string]struct {
		request *csi.ListSnapshotsRequest
		want    []string
	}{
		"no filter":                  {&csi.ListSnapshotsRequest{}, []string{first, second, third}},
		"source volume":              {&csi.ListSnapshotsRequest{SourceVolumeId: one}, []string{first, second}},
		"snapshot ID":                {&csi.ListSnapshotsRequest{SnapshotId: third}, []string{third}},
		"snapshot of another volume": {&csi.ListSnapshotsRequest{SnapshotId: third, SourceVolumeId: one}, nil},
		"page of a source volume":    {&csi.ListSnapshotsRequest{SourceVolumeId: one, MaxEntries: 1}, []string{first}},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := driver.ListSnapshots(t.Context(), tc.request)
			expectCode(t, err, codes.OK)
			var got []string
			for _, entry := range response.GetEntries() {
				got = append(got, entry.GetSnapshot().GetSnapshotId())
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("the list holds %v, want %v", got, tc.want)
			}
		})
	}
}

func TestListVolumesRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		request *csi.ListVolumesRequest
		want    codes.Code
	}{
		"foreign token":                 {&csi.ListVolumesRequest{StartingToken: "tomorrow"}, codes.Aborted},
		"token with a sign":             {&csi.ListVolumesRequest{StartingToken: "after--1"}, codes.Aborted},
		"token above the last sequence": {&csi.ListVolumesRequest{StartingToken: "after-99"}, codes.Aborted},
		"negative limit":                {&csi.ListVolumesRequest{MaxEntries: -1}, codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			_, driver := start(t, everything())
			_, err := driver.ListVolumes(t.Context(), tc.request)
			expectCode(t, err, tc.want)
		})
	}
}
