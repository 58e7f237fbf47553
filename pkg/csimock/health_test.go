package csimock_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

var (
	degraded    = csimock.Condition{Status: "DEGRADED", Reason: "ReplicaMissing", Message: "one replica of two"}
	lost        = csimock.Condition{Status: "DATA_LOSS", Reason: "ReplicaMissing"}
	unreachable = csimock.Condition{Status: "STORAGE_UNREACHABLE", Reason: "NoPath"}
)

// conditionsOf returns the statuses in a report, each with its reason.
func conditionsOf(health *csi.VolumeHealth) []string {
	conditions := []string{}
	for _, entry := range health.GetHealthStatuses() {
		conditions = append(conditions, entry.GetStatus().String()+" "+entry.GetReason())
	}
	return conditions
}

// controllerHealth returns the conditions that the controller reports.
func controllerHealth(t *testing.T, driver clients, id string) []string {
	t.Helper()
	response, err := driver.ControllerGetVolumeHealth(t.Context(), &csi.ControllerGetVolumeHealthRequest{VolumeId: id})
	expectCode(t, err, codes.OK)
	return conditionsOf(response.GetVolumeHealth())
}

// nodeHealth returns the conditions that the node reports.
func nodeHealth(t *testing.T, driver clients, id string) []string {
	t.Helper()
	response, err := driver.NodeGetVolumeHealth(t.Context(), &csi.NodeGetVolumeHealthRequest{VolumeId: id})
	expectCode(t, err, codes.OK)
	return conditionsOf(response.GetVolumeHealth())
}

// storageHealth returns the conditions of the storage backend.
func storageHealth(t *testing.T, driver clients) []string {
	t.Helper()
	response, err := driver.NodeGetStorageHealth(t.Context(), &csi.NodeGetStorageHealthRequest{})
	expectCode(t, err, codes.OK)
	conditions := []string{}
	for _, backend := range response.GetBackendHealth() {
		conditions = append(conditions, backend.GetStatus().String()+" "+backend.GetReason())
	}
	return conditions
}

// expectConditions compares conditions.
func expectConditions(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

func TestHealthSurvivesARestart(t *testing.T) {
	config := everything()
	config.StateFile = filepath.Join(t.TempDir(), "state.json")
	server, driver := start(t, config)
	id := create(t, driver, volumeRequest("one"))
	expectConditions(t, controllerHealth(t, driver, id))
	expectConditions(t, storageHealth(t, driver))
	if err := server.SetVolumeHealth("one", degraded, lost); err != nil {
		t.Fatal(err)
	}
	if err := server.SetStorageHealth(unreachable); err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	server, driver = start(t, config)
	expectConditions(t, controllerHealth(t, driver, id), "DEGRADED ReplicaMissing", "DATA_LOSS ReplicaMissing")
	expectConditions(t, nodeHealth(t, driver, id), "DEGRADED ReplicaMissing", "DATA_LOSS ReplicaMissing")
	expectConditions(t, storageHealth(t, driver), "STORAGE_UNREACHABLE NoPath")
	if err := server.SetVolumeHealth(id); err != nil {
		t.Fatal(err)
	}
	if err := server.SetStorageHealth(); err != nil {
		t.Fatal(err)
	}
	expectConditions(t, controllerHealth(t, driver, id))
	expectConditions(t, storageHealth(t, driver))
}

func TestConfiguredHealthAppliesToLaterVolumes(t *testing.T) {
	config := everything()
	config.StateFile = filepath.Join(t.TempDir(), "state.json")
	config.Health = []csimock.HealthEntry{{Volume: "one", Condition: degraded}, {Condition: unreachable}}
	for range 2 {
		server, driver := start(t, config)
		expectConditions(t, controllerHealth(t, driver, create(t, driver, volumeRequest("one"))), "DEGRADED ReplicaMissing")
		expectConditions(t, storageHealth(t, driver), "STORAGE_UNREACHABLE NoPath")
		config.Health = append(config.Health, csimock.HealthEntry{Volume: "one", Condition: degraded}) // once is enough
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	config.Health = []csimock.HealthEntry{{Volume: "one", Condition: lost}}
	server, _ := start(t, config)
	if diff := cmp.Diff([]csimock.Condition{degraded, lost}, server.Volumes()[0].Health); diff != "" {
		t.Errorf("conditions after the restart (-want +got):\n%s", diff)
	}
}

func TestDriverDetectsConditions(t *testing.T) {
	config := everything()
	config.StateFile = filepath.Join(t.TempDir(), "state.json")
	server, driver := start(t, config)
	id, staging := staged(t, driver, single())
	target := filepath.Join(t.TempDir(), "target")
	_, err := driver.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
		VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: single(),
	})
	expectCode(t, err, codes.OK)
	expectConditions(t, nodeHealth(t, driver, id))
	if err := os.Remove(target); err != nil {
		t.Fatal(err)
	}
	expectConditions(t, nodeHealth(t, driver, id), "INACCESSIBLE TargetPathMissing")
	expectConditions(t, controllerHealth(t, driver, id))
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	config.Topologies, config.Capacity = []map[string]string{{"zone": "c"}}, 1
	_, driver = start(t, config)
	expectConditions(t, controllerHealth(t, driver, id), "INACCESSIBLE TopologyNotServed")
	expectConditions(t, storageHealth(t, driver), "STORAGE_DEGRADED PoolOvercommitted")
}

func TestListingHealthOmitsHealthyVolumes(t *testing.T) {
	server, driver := start(t, everything())
	var want, got []string
	for _, name := range []string{"a", "b", "c", "d"} {
		id := create(t, driver, volumeRequest(name))
		if name == "b" {
			continue
		}
		want = append(want, id)
		if err := server.SetVolumeHealth(id, degraded); err != nil {
			t.Fatal(err)
		}
	}
	request := &csi.ControllerListVolumeHealthRequest{MaxEntries: 2}
	for {
		response, err := driver.ControllerListVolumeHealth(t.Context(), request)
		expectCode(t, err, codes.OK)
		for _, entry := range response.GetEntries() {
			got = append(got, entry.GetVolumeId())
		}
		if request.StartingToken = response.GetNextToken(); request.StartingToken == "" {
			break
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("volumes listed (-want +got):\n%s", diff)
	}
	_, err := driver.ControllerListVolumeHealth(t.Context(),
		&csi.ControllerListVolumeHealthRequest{StartingToken: "nonsense"})
	expectCode(t, err, codes.Aborted)
	_, err = driver.ControllerListVolumeHealth(t.Context(), &csi.ControllerListVolumeHealthRequest{MaxEntries: -1})
	expectCode(t, err, codes.InvalidArgument)
}

func TestInvalidHealthRequestIsRefused(t *testing.T) {
	_, driver := start(t, everything())
	id := create(t, driver, volumeRequest("one"))
	for name, tc := range map[string]struct {
		request *csi.NodeGetVolumeHealthRequest
		want    codes.Code
	}{
		"volume missing":          {&csi.NodeGetVolumeHealthRequest{VolumeId: "vol-9"}, codes.NotFound},
		"no volume":               {&csi.NodeGetVolumeHealthRequest{}, codes.InvalidArgument},
		"relative publish path":   {&csi.NodeGetVolumeHealthRequest{VolumeId: id, VolumePublishPath: "x"}, codes.InvalidArgument},
		"relative staging path":   {&csi.NodeGetVolumeHealthRequest{VolumeId: id, StagingTargetPath: "x"}, codes.InvalidArgument},
		"paths of another volume": {&csi.NodeGetVolumeHealthRequest{VolumeId: id, VolumePublishPath: "/x", StagingTargetPath: "/y"}, codes.OK},
		"unused volume":           {&csi.NodeGetVolumeHealthRequest{VolumeId: id}, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := driver.NodeGetVolumeHealth(t.Context(), tc.request)
			expectCode(t, err, tc.want)
		})
	}
	for id, want := range map[string]codes.Code{"": codes.InvalidArgument, "vol-9": codes.NotFound} {
		_, err := driver.ControllerGetVolumeHealth(t.Context(), &csi.ControllerGetVolumeHealthRequest{VolumeId: id})
		expectCode(t, err, want)
	}
}

func TestHealthCallsFailAsScripted(t *testing.T) {
	server, driver := start(t, everything())
	id := create(t, driver, volumeRequest("one"))
	if err := server.Inject(
		csimock.Fault{Method: "ControllerGetVolumeHealth", Volume: id, Code: codes.Unavailable, Times: 1},
		csimock.Fault{Method: "ControllerListVolumeHealth", Code: codes.Internal, Times: 1},
		csimock.Fault{Method: "NodeGetVolumeHealth", Volume: id, Code: codes.Aborted, Times: 1},
		csimock.Fault{Method: "NodeGetStorageHealth", Code: codes.DeadlineExceeded, Times: 1},
	); err != nil {
		t.Fatal(err)
	}
	_, err := driver.ControllerGetVolumeHealth(t.Context(), &csi.ControllerGetVolumeHealthRequest{VolumeId: id})
	expectCode(t, err, codes.Unavailable)
	_, err = driver.ControllerListVolumeHealth(t.Context(), &csi.ControllerListVolumeHealthRequest{})
	expectCode(t, err, codes.Internal)
	_, err = driver.NodeGetVolumeHealth(t.Context(), &csi.NodeGetVolumeHealthRequest{VolumeId: id})
	expectCode(t, err, codes.Aborted)
	_, err = driver.NodeGetStorageHealth(t.Context(), &csi.NodeGetStorageHealthRequest{})
	expectCode(t, err, codes.DeadlineExceeded)
	expectConditions(t, controllerHealth(t, driver, id))
	want := []csimock.Call{
		{Seq: 2, Method: "ControllerGetVolumeHealth", Volume: id, Code: "Unavailable", Volumes: 1},
		{Seq: 3, Method: "ControllerListVolumeHealth", Code: "Internal", Volumes: 1},
		{Seq: 4, Method: "NodeGetVolumeHealth", Volume: id, Code: "Aborted", Volumes: 1},
		{Seq: 5, Method: "NodeGetStorageHealth", Code: "DeadlineExceeded", Volumes: 1},
		{Seq: 6, Method: "ControllerGetVolumeHealth", Volume: id, Code: "OK", Volumes: 1},
	}
	if diff := cmp.Diff(want, server.Calls()[1:], timeless); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestInvalidConditionIsRefused(t *testing.T) {
	server, driver := start(t, everything())
	create(t, driver, volumeRequest("one"))
	for want, err := range map[string]error{
		"does not exist": server.SetVolumeHealth("two", degraded),
		`unknown status "STORAGE_UNREACHABLE", known are DATA_LOSS, DEGRADED, INACCESSIBLE`: server.SetVolumeHealth("one",
			unreachable),
		`unknown status "UNKNOWN_VOLUME_HEALTH_TYPE"`: server.SetVolumeHealth("one",
			csimock.Condition{Status: "UNKNOWN_VOLUME_HEALTH_TYPE", Reason: "A"}),
		"DEGRADED with reason ReplicaMissing is given twice": server.SetVolumeHealth("one",
			degraded, degraded),
		`reason "not one word"`: server.SetStorageHealth(csimock.Condition{Status: "STORAGE_DEGRADED",
			Reason: "not one word"}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

func TestLoadHealthNamesTheEntry(t *testing.T) {
	file := filepath.Join(t.TempDir(), "health.yaml")
	for content, want := range map[string]string{
		"{}": "want a list of conditions",
		"[{volume: a, status: DEGRADED, reason: Slow}, {volume: a, status: SICK, reason: Slow}]": `entry 2: unknown status "SICK"`,
		"[{status: DEGRADED, reason: Slow}]":                                                     `entry 1: unknown status "DEGRADED", known are STORAGE_DEGRADED, STORAGE_UNREACHABLE`,
		"[{volume: a, status: DEGRADED, reason: Slow, color: red}]":                              "entry 1: json: unknown field",
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := csimock.LoadHealth(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error for %s is %v, want %q", content, err, want)
		}
	}
	content := "[{volume: a, status: DEGRADED, reason: ReplicaMissing, message: one replica of two}, {status: STORAGE_UNREACHABLE, reason: NoPath}]"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := csimock.LoadHealth(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]csimock.HealthEntry{{Volume: "a", Condition: degraded}, {Condition: unreachable}},
		got); diff != "" {
		t.Errorf("health (-want +got):\n%s", diff)
	}
}
