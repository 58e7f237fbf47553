package csimock_test

import (
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

func TestALieIsToldOfAVolumeThatExists(t *testing.T) {
	server, driver := start(t, csimock.Config{Capabilities: csimock.AllCapabilities()})
	first := create(t, driver, volumeRequest("first"))
	for name, tc := range map[csimock.Lie]func(*csi.Volume) bool{
		csimock.NoID:     func(v *csi.Volume) bool { return v.GetVolumeId() == "" },
		csimock.LongID:   func(v *csi.Volume) bool { return len(v.GetVolumeId()) == 1000 },
		csimock.OtherID:  func(v *csi.Volume) bool { return v.GetVolumeId() == first },
		csimock.TooSmall: func(v *csi.Volume) bool { return v.GetCapacityBytes() == 1 },
		csimock.Elsewhere: func(v *csi.Volume) bool {
			return v.GetAccessibleTopology()[0].GetSegments()["csimock/zone"] == "nowhere"
		},
		csimock.NoSource: func(v *csi.Volume) bool { return v.GetContentSource() == nil },
	} {
		if err := server.Inject(csimock.Fault{Method: "CreateVolume", Times: 1, Lie: name}); err != nil {
			t.Fatal(err)
		}
		request := volumeRequest(string(name))
		request.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: first}}}
		lied, err := driver.CreateVolume(t.Context(), request)
		if err != nil || !tc(lied.GetVolume()) {
			t.Errorf("%s: %v, %v", name, lied, err)
		}
		honest, err := driver.CreateVolume(t.Context(), request)
		if err != nil || tc(honest.GetVolume()) {
			t.Errorf("%s: told again: %v, %v", name, honest, err)
		}
		if name == csimock.LongID {
			deleteVolume(t, driver, lied.GetVolume().GetVolumeId())
		}
	}
	if got := len(server.Volumes()); got != 6 {
		t.Errorf("there are %d volumes, want the first, and all lied about but the deleted one", got)
	}
	if err := server.Inject(csimock.Fault{Method: "DeleteVolume", Lie: csimock.NoID}); err == nil {
		t.Error("a lie of DeleteVolume is accepted")
	}
}

func TestADriverThatWantsSecretsRefusesWhoHasNone(t *testing.T) {
	_, driver := start(t, csimock.Config{Secrets: map[string]string{"password": "hunter2"}})
	request := volumeRequest("one")
	for _, wrong := range []map[string]string{nil, {"password": "wrong"}} {
		request.Secrets = wrong
		_, err := driver.CreateVolume(t.Context(), request)
		expectCode(t, err, codes.Unauthenticated)
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "wrong") {
			t.Errorf("the error tells a secret: %v", err)
		}
	}
	request.Secrets = map[string]string{"password": "hunter2", "more": "x"}
	create(t, driver, request)
}
