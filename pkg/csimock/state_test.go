package csimock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

func TestRestartKeepsState(t *testing.T) {
	config := everything()
	config.StateFile = filepath.Join(t.TempDir(), "state.json")
	server, driver := start(t, config)
	_, group := takeGroup(t, driver)
	request := volumeRequest("rich")
	request.Parameters = map[string]string{"tier": "gold"}
	request.MutableParameters = map[string]string{"iops": "1"}
	request.VolumeContentSource = fromSnapshot(members(group)[0])
	rich := create(t, driver, request)
	publish(t, driver, rich)
	before, snapshots := server.Volumes(), server.Snapshots()
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}

	server, driver = start(t, config)
	if diff := cmp.Diff(before, server.Volumes()); diff != "" {
		t.Errorf("volumes after the restart (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(snapshots, server.Snapshots()); diff != "" {
		t.Errorf("snapshots after the restart (-before +after):\n%s", diff)
	}
	if again := create(t, driver, request); again != rich {
		t.Errorf("after the restart the same request made volume %s besides %s", again, rich)
	}
	_, err := driver.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: rich})
	expectCode(t, err, codes.FailedPrecondition) // it is still published
	_, err = driver.GetVolumeGroupSnapshot(t.Context(), &csi.GetVolumeGroupSnapshotRequest{
		GroupSnapshotId: group.GetGroupSnapshotId(), SnapshotIds: members(group),
	})
	expectCode(t, err, codes.OK)
}

func TestIDsStayUniqueAfterRestart(t *testing.T) {
	config := csimock.Config{StateFile: filepath.Join(t.TempDir(), "state.json")}
	server, driver := start(t, config)
	first := create(t, driver, volumeRequest("one"))
	deleteVolume(t, driver, first)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	server, driver = start(t, config)
	create(t, driver, volumeRequest("one"))
	if second := server.Volumes()[0]; second.ID == first || second.Sequence != 2 {
		t.Errorf("the second volume is %+v, the first was %s", second.Record, first)
	}
}

// What a driver has confirmed is in the file, however many calls come at once.
func TestStateIsSavedBeforeTheResponse(t *testing.T) {
	config := csimock.Config{StateFile: filepath.Join(t.TempDir(), "state.json")}
	_, driver := start(t, config)
	var calls errgroup.Group
	for i := range 30 {
		calls.Go(func() error {
			response, err := driver.CreateVolume(t.Context(), volumeRequest(fmt.Sprintf("volume-%d", i)))
			if err != nil {
				return err
			}
			content, err := os.ReadFile(config.StateFile)
			if err != nil {
				return err
			}
			if id := response.GetVolume().GetVolumeId(); !strings.Contains(string(content), id) {
				return fmt.Errorf("volume %s is not in the state file", id)
			}
			return nil
		})
	}
	if err := calls.Wait(); err != nil {
		t.Error(err)
	}
}

func TestCorruptStateFileIsRefusedAndKept(t *testing.T) {
	const volume = `{"id": "vol-1", "name": "one", "sequence": 1, "capacity": 1, "access": []}`
	const driver = `"version": 1, "driver": "csimock.exeunt.io", "sequence": 1`
	for name, content := range map[string]string{
		"empty":                          "",
		"truncated":                      `{"version": 1, "volu`,
		"second document":                `{` + driver + `} {}`,
		"other version":                  `{"version": 2, "driver": "csimock.exeunt.io"}`,
		"other driver":                   `{"version": 1, "driver": "another"}`,
		"unknown field":                  `{` + driver + `, "mirrors": []}`,
		"duplicate volume":               `{` + driver + `, "volumes": [` + volume + `, ` + volume + `]}`,
		"volume above the last sequence": `{` + driver + `, "volumes": [{"id": "vol-9", "sequence": 9}]}`,
		"negative capacity":              `{` + driver + `, "volumes": [{"id": "vol-1", "sequence": 1, "capacity": -1}]}`,
		"null volume":                    `{` + driver + `, "volumes": [null]}`,
		"snapshot without ID":            `{` + driver + `, "snapshots": [{"sequence": 1}]}`,
		"duplicate group": `{` + driver +
			`, "groups": [{"id": "g", "sequence": 1}, {"id": "g", "sequence": 1}]}`,
		"group without its snapshot": `{` + driver + `, "groups": [{"id": "g", "sequence": 1, "snapshots": ["s"]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "state.json")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := csimock.New(csimock.Config{StateFile: file})
			if err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("New gives %v, want an error that names %s", err, file)
			}
			if after, err := os.ReadFile(file); err != nil || string(after) != content {
				t.Errorf("the file now holds %q (%v)", after, err)
			}
		})
	}
}

func TestUnwritableStateFile(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	config := csimock.Config{StateFile: filepath.Join(directory, "state.json")}
	server, driver := start(t, config)
	if err := os.RemoveAll(directory); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a retry does not find what was never saved
		_, err := driver.CreateVolume(t.Context(), volumeRequest("one"))
		expectCode(t, err, codes.Internal)
	}
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	create(t, driver, volumeRequest("one"))
	if got := len(server.Volumes()); got != 1 {
		t.Errorf("there are %d volumes, want 1", got)
	}
}

func TestStateFileWithoutDirectoryIsRefused(t *testing.T) {
	if _, err := csimock.New(csimock.Config{StateFile: "/nowhere/state.json"}); err == nil {
		t.Error("New made a driver that cannot save its state")
	}
	if _, err := csimock.New(csimock.Config{StateFile: t.TempDir()}); err == nil {
		t.Error("New made a driver with a directory for a state file")
	}
}
