package csimock_test

import (
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

func TestSnapshotOutlivesItsVolume(t *testing.T) {
	server, driver := start(t, everything())
	source := create(t, driver, volumeRequest("source"))
	snapshot := takeSnapshot(t, driver, "snapshot", source)
	deleteVolume(t, driver, source)
	request := volumeRequest("restored")
	request.VolumeContentSource = fromSnapshot(snapshot)
	create(t, driver, request)
	if got := server.Volumes()[0].Source.Snapshot; got != snapshot {
		t.Errorf("the volume was made from %q, want %q", got, snapshot)
	}
	if got := takeSnapshot(t, driver, "snapshot", source); got != snapshot {
		t.Errorf("taking it again gave %s, want %s", got, snapshot)
	}
}

// getSnapshot asks for a snapshot and expects the given code.
func getSnapshot(t *testing.T, driver clients, id string, want codes.Code) *csi.Snapshot {
	t.Helper()
	response, err := driver.GetSnapshot(t.Context(), &csi.GetSnapshotRequest{SnapshotId: id})
	expectCode(t, err, want)
	return response.GetSnapshot()
}

func TestGetSnapshot(t *testing.T) {
	config := everything()
	config.StateFile = filepath.Join(t.TempDir(), "state.json")
	server, driver := start(t, config)
	id := takeSnapshot(t, driver, "snapshot", create(t, driver, volumeRequest("source")))
	_, group := takeGroup(t, driver)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	server, driver = start(t, config)
	for _, id := range append(members(group), id) {
		if got := getSnapshot(t, driver, id, codes.OK); got.GetSnapshotId() != id || got.GetSizeBytes() != gib ||
			!got.GetReadyToUse() {
			t.Errorf("snapshot %s is %v", id, got)
		}
	}
	if got := getSnapshot(t, driver, members(group)[0], codes.OK).GetGroupSnapshotId(); got != group.GetGroupSnapshotId() {
		t.Errorf("the group of the snapshot is %q, want %q", got, group.GetGroupSnapshotId())
	}
	getSnapshot(t, driver, "", codes.InvalidArgument)
	getSnapshot(t, driver, "snap-9", codes.NotFound)
	if err := server.Inject(csimock.Fault{Method: "GetSnapshot", Volume: id, Code: codes.Unavailable}); err != nil {
		t.Fatal(err)
	}
	getSnapshot(t, driver, members(group)[0], codes.OK)
	getSnapshot(t, driver, id, codes.Unavailable)
	calls := server.Calls()
	want := csimock.Call{Method: "GetSnapshot", Snapshot: id, Code: "Unavailable", Volumes: 3}
	if diff := cmp.Diff(want, calls[len(calls)-1], timeless, cmpopts.IgnoreFields(csimock.Call{}, "Seq")); diff != "" {
		t.Errorf("last call (-want +got):\n%s", diff)
	}
}

func TestCreateSnapshotRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		request *csi.CreateSnapshotRequest
		want    codes.Code
	}{
		"unknown volume":                       {&csi.CreateSnapshotRequest{Name: "new", SourceVolumeId: "vol-9"}, codes.NotFound},
		"name of a snapshot of another volume": {&csi.CreateSnapshotRequest{Name: "taken", SourceVolumeId: "vol-9"}, codes.AlreadyExists},
		"request without a name":               {&csi.CreateSnapshotRequest{SourceVolumeId: "vol-9"}, codes.InvalidArgument},
		"request without a volume":             {&csi.CreateSnapshotRequest{Name: "new"}, codes.InvalidArgument},
		"name with a control character":        {&csi.CreateSnapshotRequest{Name: "\x01", SourceVolumeId: "vol-9"}, codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			_, driver := start(t, everything())
			takeSnapshot(t, driver, "taken", create(t, driver, volumeRequest("source")))
			_, err := driver.CreateSnapshot(t.Context(), tc.request)
			expectCode(t, err, tc.want)
		})
	}
}

// takeGroup takes a group of snapshots of two new volumes.
func takeGroup(t *testing.T, driver clients) (*csi.CreateVolumeGroupSnapshotRequest, *csi.VolumeGroupSnapshot) {
	t.Helper()
	request := &csi.CreateVolumeGroupSnapshotRequest{Name: "group", SourceVolumeIds: []string{
		create(t, driver, volumeRequest("one")), create(t, driver, volumeRequest("two")),
	}}
	response, err := driver.CreateVolumeGroupSnapshot(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return request, response.GetGroupSnapshot()
}

// members returns the IDs of the snapshots in a group.
func members(group *csi.VolumeGroupSnapshot) []string {
	var ids []string
	for _, snapshot := range group.GetSnapshots() {
		ids = append(ids, snapshot.GetSnapshotId())
	}
	return ids
}

func TestGroupIsDeletedWithItsSnapshots(t *testing.T) {
	server, driver := start(t, everything())
	_, group := takeGroup(t, driver)
	_, err := driver.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: members(group)[0]})
	expectCode(t, err, codes.InvalidArgument)
	request := &csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: group.GetGroupSnapshotId(),
		SnapshotIds: members(group)[:1]}
	_, err = driver.DeleteVolumeGroupSnapshot(t.Context(), request)
	expectCode(t, err, codes.InvalidArgument)
	request.SnapshotIds = members(group)
	for range 2 {
		_, err = driver.DeleteVolumeGroupSnapshot(t.Context(), request)
		expectCode(t, err, codes.OK)
	}
	if got := server.Snapshots(); len(got) != 0 {
		t.Errorf("%d snapshots are left", len(got))
	}
}

func TestCreateGroupIsIdempotent(t *testing.T) {
	server, driver := start(t, everything())
	request, group := takeGroup(t, driver)
	request.SourceVolumeIds[0], request.SourceVolumeIds[1] = request.SourceVolumeIds[1], request.SourceVolumeIds[0]
	again, err := driver.CreateVolumeGroupSnapshot(t.Context(), request)
	expectCode(t, err, codes.OK)
	if got, want := again.GetGroupSnapshot().GetGroupSnapshotId(), group.GetGroupSnapshotId(); got != want {
		t.Errorf("taking it again gave %s, want %s", got, want)
	}
	if got := server.Snapshots(); len(got) != 2 {
		t.Errorf("there are %d snapshots, want 2", len(got))
	}
	found, err := driver.GetVolumeGroupSnapshot(t.Context(), &csi.GetVolumeGroupSnapshotRequest{
		GroupSnapshotId: group.GetGroupSnapshotId(), SnapshotIds: members(group),
	})
	expectCode(t, err, codes.OK)
	if got := members(found.GetGroupSnapshot()); len(got) != 2 {
		t.Errorf("the group has the snapshots %v, want 2", got)
	}
}

func TestCreateVolumeGroupSnapshotRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*csi.CreateVolumeGroupSnapshotRequest)
		want   codes.Code
	}{
		"no volumes":                      {func(r *csi.CreateVolumeGroupSnapshotRequest) { r.SourceVolumeIds = nil }, codes.InvalidArgument},
		"volume without an ID":            {func(r *csi.CreateVolumeGroupSnapshotRequest) { r.SourceVolumeIds[0] = "" }, codes.InvalidArgument},
		"duplicate volume":                {func(r *csi.CreateVolumeGroupSnapshotRequest) { r.SourceVolumeIds[0] = r.SourceVolumeIds[1] }, codes.InvalidArgument},
		"other volumes, existing name":    {func(r *csi.CreateVolumeGroupSnapshotRequest) { r.SourceVolumeIds = r.SourceVolumeIds[:1] }, codes.AlreadyExists},
		"other parameters, existing name": {func(r *csi.CreateVolumeGroupSnapshotRequest) { r.Parameters = map[string]string{"a": "b"} }, codes.AlreadyExists},
		"unknown volume":                  {func(r *csi.CreateVolumeGroupSnapshotRequest) { r.Name, r.SourceVolumeIds[0] = "new", "vol-9" }, codes.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			server, driver := start(t, everything())
			request, _ := takeGroup(t, driver)
			tc.change(request)
			_, err := driver.CreateVolumeGroupSnapshot(t.Context(), request)
			expectCode(t, err, tc.want)
			if got := server.Snapshots(); len(got) != 2 {
				t.Errorf("there are %d snapshots, want 2", len(got))
			}
		})
	}
}
