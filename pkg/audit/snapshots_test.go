package audit

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// snapshotDriver answers ListSnapshots by a function of the number of the call.
type snapshotDriver struct {
	Driver
	lists bool
	calls int
	page  func(call int) *csi.ListSnapshotsResponse
}

func (d *snapshotDriver) ListsSnapshots() bool { return d.lists }

func (d *snapshotDriver) ListSnapshots(context.Context, *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	d.calls++
	return d.page(d.calls), nil
}

// snapshotPage returns a page with the snapshots, each of a volume with the prefix "of-".
func snapshotPage(next string, ids ...string) *csi.ListSnapshotsResponse {
	page := &csi.ListSnapshotsResponse{NextToken: next}
	for _, id := range ids {
		page.Entries = append(page.Entries,
			&csi.ListSnapshotsResponse_Entry{Snapshot: &csi.Snapshot{SnapshotId: id, SourceVolumeId: "of-" + id}})
	}
	return page
}

func TestSourcesOfImportedSnapshots(t *testing.T) {
	const wrong = "driver d did not list its snapshots: "
	for name, tc := range map[string]struct {
		driver *snapshotDriver
		want   string
	}{
		"two pages": {&snapshotDriver{lists: true, page: func(call int) *csi.ListSnapshotsResponse {
			return []*csi.ListSnapshotsResponse{snapshotPage("t", "other"), snapshotPage("", "imported")}[call-1]
		}}, ""},
		"snapshots are not listed": {&snapshotDriver{}, "driver d has no capability LIST_SNAPSHOTS"},
		"no driver":                {nil, "the volumes of imported snapshots are not known without --csi-address"},
		"the imported snapshot is not listed": {&snapshotDriver{lists: true, page: func(int) *csi.ListSnapshotsResponse {
			return snapshotPage("", "other")
		}}, "driver d does not tell of 1 imported snapshots of which volumes they were taken"},
		"the source is not listed": {&snapshotDriver{lists: true, page: func(int) *csi.ListSnapshotsResponse {
			page := snapshotPage("", "imported")
			page.Entries[0].Snapshot.SourceVolumeId = ""
			return page
		}}, "driver d does not tell of 1 imported snapshots of which volumes they were taken"},
		"only empty pages": {&snapshotDriver{lists: true, page: func(call int) *csi.ListSnapshotsResponse {
			return snapshotPage(fmt.Sprint(call))
		}}, wrong + "101 pages in a row are empty"},
		"the same page for ever": {&snapshotDriver{lists: true, page: func(call int) *csi.ListSnapshotsResponse {
			return snapshotPage(fmt.Sprint(call), "other")
		}}, wrong + `snapshot "other" is listed twice`},
		"repeated token": {&snapshotDriver{lists: true, page: func(call int) *csi.ListSnapshotsResponse {
			return snapshotPage("t", fmt.Sprint(call))
		}}, wrong + `page token "t" is repeated`},
	} {
		t.Run(name, func(t *testing.T) {
			s := &survey{refs: newReferences("d"), driverName: "d"}
			if tc.driver != nil {
				s.Driver = tc.driver
			}
			s.refs.snapshotIDs.add("imported")
			s.readSnapshotSources(t.Context())
			if got := strings.Join(s.refs.incomplete, "\n"); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("incomplete: %q, want %q", got, tc.want)
			}
			if tc.want == "" && !s.refs.snapshots.has("of-imported") {
				t.Error("the source of the imported snapshot is not known")
			}
		})
	}
}

// The snapshots of a group have contents of their own, which name the snapshot only.
func TestGroupNamesSourcesOfItsSnapshots(t *testing.T) {
	s := &survey{refs: newReferences("d"), driverName: "d"}
	s.Driver = &snapshotDriver{}
	r := &reading{refs: s.refs}
	r.addSnapshot(map[string]any{"driver": "d", "source": map[string]any{"snapshotHandle": "member"}})
	r.addHandles(map[string]any{"volumeSnapshotInfoList": []any{map[string]any{"volumeHandle": "v",
		"snapshotHandle": "member"}}})
	s.readSnapshotSources(t.Context())
	if len(s.refs.incomplete) > 0 || !s.refs.snapshots.has("v") {
		t.Errorf("incomplete: %q, source known: %v", s.refs.incomplete, s.refs.snapshots.has("v"))
	}
}
