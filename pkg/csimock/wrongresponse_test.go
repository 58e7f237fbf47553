package csimock_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

func TestWrongResponseOfExistingVolume(t *testing.T) {
	server, driver := start(t, csimock.Config{Capabilities: csimock.AllCapabilities()})
	first := create(t, driver, volumeRequest("first"))
	for name, tc := range map[csimock.WrongResponse]func(*csi.Volume) bool{
		csimock.NoID:     func(v *csi.Volume) bool { return v.GetVolumeId() == "" },
		csimock.LongID:   func(v *csi.Volume) bool { return len(v.GetVolumeId()) == 1000 },
		csimock.OtherID:  func(v *csi.Volume) bool { return v.GetVolumeId() == first },
		csimock.TooSmall: func(v *csi.Volume) bool { return v.GetCapacityBytes() == 1 },
		csimock.OtherTopology: func(v *csi.Volume) bool {
			return v.GetAccessibleTopology()[0].GetSegments()["csimock/zone"] == "nowhere"
		},
		csimock.NoSource: func(v *csi.Volume) bool { return v.GetContentSource() == nil },
	} {
		if err := server.Inject(csimock.Fault{Method: "CreateVolume", Times: 1, Response: name}); err != nil {
			t.Fatal(err)
		}
		request := volumeRequest(string(name))
		request.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: first}}}
		wrong, err := driver.CreateVolume(t.Context(), request)
		if err != nil || !tc(wrong.GetVolume()) {
			t.Errorf("%s: %v, %v", name, wrong, err)
		}
		right, err := driver.CreateVolume(t.Context(), request)
		if err != nil || tc(right.GetVolume()) {
			t.Errorf("%s: wrong response twice: %v, %v", name, right, err)
		}
		if name == csimock.LongID {
			deleteVolume(t, driver, wrong.GetVolume().GetVolumeId())
		}
	}
	if got := len(server.Volumes()); got != 6 {
		t.Errorf("%d volumes, want 6: the first and all with wrong responses but the deleted one", got)
	}
	if err := server.Inject(csimock.Fault{Method: "DeleteVolume", Response: csimock.NoID}); err == nil {
		t.Error("a wrong response of DeleteVolume is accepted")
	}
}

// A driver that was started again knows the volume by the long ID, too.
func TestLongIDSurvivesARestart(t *testing.T) {
	config := csimock.Config{StateFile: filepath.Join(t.TempDir(), "state.json")}
	server, driver := start(t, config)
	if err := server.Inject(csimock.Fault{Method: "CreateVolume", Times: 1, Response: csimock.LongID}); err != nil {
		t.Fatal(err)
	}
	made, err := driver.CreateVolume(t.Context(), volumeRequest("one"))
	if err != nil {
		t.Fatal(err)
	}
	again, restarted := start(t, config)
	deleteVolume(t, restarted, made.GetVolume().GetVolumeId())
	if left := again.Volumes(); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

func TestCallWithoutRequiredSecretsFails(t *testing.T) {
	_, driver := start(t, csimock.Config{Secrets: map[string]string{"password": "hunter2"}})
	request := volumeRequest("one")
	for _, wrong := range []map[string]string{nil, {"password": "wrong"}} {
		request.Secrets = wrong
		_, err := driver.CreateVolume(t.Context(), request)
		expectCode(t, err, codes.Unauthenticated)
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "wrong") {
			t.Errorf("the error contains a secret: %v", err)
		}
	}
	request.Secrets = map[string]string{"password": "hunter2", "more": "x"}
	create(t, driver, request)
}

func TestWrongPageOfVolumes(t *testing.T) {
	server, driver := start(t, csimock.Config{Volumes: 3})
	for name, want := range map[csimock.WrongResponse]int{csimock.MissingEntry: 2, csimock.DuplicateEntry: 4,
		csimock.RepeatToken: 3} {
		if err := server.Inject(csimock.Fault{Method: "ListVolumes", Times: 1, Response: name}); err != nil {
			t.Fatal(err)
		}
		page, err := driver.ListVolumes(t.Context(), &csi.ListVolumesRequest{})
		if err != nil || len(page.GetEntries()) != want || (page.GetNextToken() != "") != (name == csimock.RepeatToken) {
			t.Errorf("%s: %v, %v", name, page, err)
		}
	}
	if err := server.Inject(csimock.Fault{Method: "ListVolumes", Response: csimock.NoID}); err == nil {
		t.Error("a response of CreateVolume is accepted for ListVolumes")
	}
}

func TestDriverStartsWithVolumes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	for range 2 { // the second time from the state file
		driver, err := csimock.New(csimock.Config{Volumes: 3, StateFile: file})
		if err != nil {
			t.Fatal(err)
		}
		if volumes := driver.Volumes(); len(volumes) != 3 || volumes[0].Name != "volume-000001" ||
			volumes[0].Capacity != 1<<20 {
			t.Errorf("volumes: %+v", volumes)
		}
	}
}
