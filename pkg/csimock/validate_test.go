package csimock_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

func TestValidateVolumeCapabilities(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*csi.ValidateVolumeCapabilitiesRequest)
		why    string // in the message; empty if the answer is a confirmation
	}{
		"same access":              {func(*csi.ValidateVolumeCapabilitiesRequest) {}, ""},
		"other access":             {func(r *csi.ValidateVolumeCapabilitiesRequest) { r.VolumeCapabilities[0] = raw() }, "volume capabilities"},
		"same context":             {func(r *csi.ValidateVolumeCapabilitiesRequest) { r.VolumeContext = map[string]string{"name": "one"} }, ""},
		"other context":            {func(r *csi.ValidateVolumeCapabilitiesRequest) { r.VolumeContext = map[string]string{"name": "two"} }, "context"},
		"other parameters":         {func(r *csi.ValidateVolumeCapabilitiesRequest) { r.Parameters["tier"] = "iron" }, "parameters"},
		"other mutable parameters": {func(r *csi.ValidateVolumeCapabilitiesRequest) { r.MutableParameters["iops"] = "2" }, "mutable parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			_, driver := start(t, everything())
			made := volumeRequest("one")
			made.Parameters, made.MutableParameters = map[string]string{"tier": "gold"}, map[string]string{"iops": "1"}
			request := &csi.ValidateVolumeCapabilitiesRequest{
				VolumeId:           create(t, driver, made),
				VolumeCapabilities: []*csi.VolumeCapability{single()},
				Parameters:         map[string]string{"tier": "gold"},
				MutableParameters:  map[string]string{"iops": "1"},
			}
			tc.change(request)
			response, err := driver.ValidateVolumeCapabilities(t.Context(), request)
			expectCode(t, err, codes.OK)
			if (response.GetConfirmed() != nil) != (tc.why == "") || !strings.Contains(response.GetMessage(), tc.why) {
				t.Errorf("the answer is %v, want a message about %q", response, tc.why)
			}
		})
	}
}

func TestGetCapacityRefuses(t *testing.T) {
	for name, request := range map[string]*csi.GetCapacityRequest{
		"topology without the capability": {AccessibleTopology: zones("a")[0]},
		"empty capability":                {VolumeCapabilities: []*csi.VolumeCapability{{}}},
		"parameters above 4 KiB":          {Parameters: map[string]string{"k": strings.Repeat("v", 4096)}},
	} {
		t.Run(name, func(t *testing.T) {
			_, driver := start(t, csimock.Config{})
			_, err := driver.GetCapacity(t.Context(), request)
			expectCode(t, err, codes.InvalidArgument)
		})
	}
}

// A driver that neither attaches nor stages publishes on the node right away.
func TestPublishWithoutAttachAndStage(t *testing.T) {
	_, driver := start(t, csimock.Config{Capabilities: csimock.Capabilities{}.With(csimock.CreateDelete)})
	request := volumeRequest("one")
	request.VolumeCapabilities = append(request.VolumeCapabilities, raw())
	id := create(t, driver, request)
	for name, tc := range map[string]struct {
		how     *csi.VolumeCapability
		content string
		want    codes.Code
	}{
		"existing empty file":        {raw(), "", codes.OK},
		"existing file with content": {raw(), "precious", codes.FailedPrecondition},
		"directory over a file":      {single(), "", codes.FailedPrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "target")
			if err := os.WriteFile(target, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := driver.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: id, TargetPath: target,
				VolumeCapability: tc.how})
			expectCode(t, err, tc.want)
			_, err = driver.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target})
			expectCode(t, err, codes.OK)
			if _, err := os.Stat(target); os.IsNotExist(err) != (tc.want == codes.OK) {
				t.Errorf("after unpublishing, the target is %v", err)
			}
		})
	}
}

func TestExpansionReportsNodeExpansion(t *testing.T) {
	_, driver := start(t, everything())
	request := volumeRequest("one")
	request.VolumeCapabilities = append(request.VolumeCapabilities, raw())
	id := create(t, driver, request)
	for _, tc := range []struct {
		how  *csi.VolumeCapability
		want bool
	}{{nil, true}, {single(), true}, {raw(), false}} {
		response, err := driver.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{
			VolumeId: id, VolumeCapability: tc.how, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * gib},
		})
		expectCode(t, err, codes.OK)
		if response.GetNodeExpansionRequired() != tc.want {
			t.Errorf("for %v, node expansion is required: %t, want %t", tc.how, response.GetNodeExpansionRequired(), tc.want)
		}
	}
}
