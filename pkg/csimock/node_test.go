package csimock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// staged creates a volume, publishes it to the node and stages it in a directory. It
// returns volume ID and directory.
func staged(t testing.TB, driver clients, how *csi.VolumeCapability) (id, staging string) {
	t.Helper()
	request := volumeRequest("one")
	request.VolumeCapabilities = []*csi.VolumeCapability{single(), how}
	id, staging = create(t, driver, request), t.TempDir()
	attach := at(csimock.DefaultNodeID, how, false)
	attach.VolumeId = id
	if _, err := driver.ControllerPublishVolume(t.Context(), attach); err != nil {
		t.Fatal(err)
	}
	if _, err := driver.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
		VolumeId: id, StagingTargetPath: staging, VolumeCapability: how,
	}); err != nil {
		t.Fatal(err)
	}
	return id, staging
}

func TestTargetPathIsCreatedAndRemoved(t *testing.T) {
	for name, how := range map[string]*csi.VolumeCapability{
		"directory for mount": single(),
		"file for block":      raw(),
	} {
		t.Run(name, func(t *testing.T) {
			_, driver := start(t, everything())
			id, staging := staged(t, driver, how)
			target := filepath.Join(t.TempDir(), "target")
			if _, err := driver.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
				VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: how,
			}); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(target)
			if err != nil || info.IsDir() != (how.GetMount() != nil) {
				t.Errorf("the target is %v (%v)", info, err)
			}
			if _, err := driver.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: id,
				TargetPath: target}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(target); !os.IsNotExist(err) {
				t.Errorf("the target is still there (%v)", err)
			}
		})
	}
}

func TestNodePublishVolumeAgain(t *testing.T) {
	sharing := mounted(csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER)
	for name, tc := range map[string]struct {
		how      *csi.VolumeCapability
		target   string
		readOnly bool
		want     codes.Code
	}{
		"same path again":             {single(), "first", false, codes.OK},
		"same path, read-only":        {single(), "first", true, codes.AlreadyExists},
		"other path, one writer":      {single(), "second", false, codes.FailedPrecondition},
		"other path, several writers": {sharing, "second", false, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			_, driver := start(t, everything())
			id, staging := staged(t, driver, tc.how)
			directory := t.TempDir()
			request := &csi.NodePublishVolumeRequest{
				VolumeId: id, StagingTargetPath: staging, VolumeCapability: tc.how, TargetPath: filepath.Join(directory, "first"),
			}
			_, err := driver.NodePublishVolume(t.Context(), request)
			expectCode(t, err, codes.OK)
			request.TargetPath, request.Readonly = filepath.Join(directory, tc.target), tc.readOnly
			_, err = driver.NodePublishVolume(t.Context(), request)
			expectCode(t, err, tc.want)
		})
	}
}

func TestNodePublishVolumeRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*testing.T, *csi.NodePublishVolumeRequest)
		want   codes.Code
	}{
		"relative target":            {func(_ *testing.T, r *csi.NodePublishVolumeRequest) { r.TargetPath = "target" }, codes.InvalidArgument},
		"no staging path":            {func(_ *testing.T, r *csi.NodePublishVolumeRequest) { r.StagingTargetPath = "" }, codes.FailedPrecondition},
		"path without staged volume": {func(_ *testing.T, r *csi.NodePublishVolumeRequest) { r.StagingTargetPath = "/nowhere" }, codes.FailedPrecondition},
		"other access type":          {func(_ *testing.T, r *csi.NodePublishVolumeRequest) { r.VolumeCapability = raw() }, codes.FailedPrecondition},
		"unknown volume":             {func(_ *testing.T, r *csi.NodePublishVolumeRequest) { r.VolumeId = "vol-9" }, codes.NotFound},
		"target in a missing directory": {func(_ *testing.T, r *csi.NodePublishVolumeRequest) {
			r.TargetPath = filepath.Join(r.TargetPath, "deeper")
		}, codes.FailedPrecondition},
		"directory with content": {func(t *testing.T, r *csi.NodePublishVolumeRequest) {
			if err := os.MkdirAll(filepath.Join(r.TargetPath, "precious"), 0o700); err != nil {
				t.Fatal(err)
			}
		}, codes.FailedPrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			_, driver := start(t, everything())
			id, staging := staged(t, driver, single())
			request := &csi.NodePublishVolumeRequest{
				VolumeId: id, StagingTargetPath: staging, TargetPath: filepath.Join(t.TempDir(), "target"),
				VolumeCapability: single(),
			}
			tc.change(t, request)
			_, err := driver.NodePublishVolume(t.Context(), request)
			expectCode(t, err, tc.want)
		})
	}
}

func TestNodeStageVolumeRefuses(t *testing.T) {
	directory := t.TempDir()
	for name, tc := range map[string]struct {
		published bool
		request   *csi.NodeStageVolumeRequest
		want      codes.Code
	}{
		"unattached volume":            {false, &csi.NodeStageVolumeRequest{StagingTargetPath: directory, VolumeCapability: single()}, codes.FailedPrecondition},
		"path is no directory":         {true, &csi.NodeStageVolumeRequest{StagingTargetPath: "/nowhere", VolumeCapability: single()}, codes.FailedPrecondition},
		"other access type":            {true, &csi.NodeStageVolumeRequest{StagingTargetPath: directory, VolumeCapability: raw()}, codes.FailedPrecondition},
		"relative path":                {true, &csi.NodeStageVolumeRequest{StagingTargetPath: "here", VolumeCapability: single()}, codes.InvalidArgument},
		"request without a capability": {true, &csi.NodeStageVolumeRequest{StagingTargetPath: directory}, codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			_, driver := start(t, everything())
			tc.request.VolumeId = create(t, driver, volumeRequest("one"))
			if tc.published {
				publish(t, driver, tc.request.GetVolumeId())
			}
			_, err := driver.NodeStageVolume(t.Context(), tc.request)
			expectCode(t, err, tc.want)
		})
	}
}

func TestPublishedVolumeIsNotUnstaged(t *testing.T) {
	_, driver := start(t, everything())
	id, staging := staged(t, driver, single())
	target := filepath.Join(t.TempDir(), "target")
	_, err := driver.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
		VolumeId: id, StagingTargetPath: staging, TargetPath: target, VolumeCapability: single(),
	})
	expectCode(t, err, codes.OK)
	unstage := &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging}
	_, err = driver.NodeUnstageVolume(t.Context(), unstage)
	expectCode(t, err, codes.FailedPrecondition)
	_, err = driver.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target})
	expectCode(t, err, codes.OK)
	for range 2 {
		_, err = driver.NodeUnstageVolume(t.Context(), unstage)
		expectCode(t, err, codes.OK)
	}
}

func TestUnpublishKeepsOtherPaths(t *testing.T) {
	_, driver := start(t, everything())
	id, _ := staged(t, driver, single())
	precious := t.TempDir()
	_, err := driver.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: precious})
	expectCode(t, err, codes.OK)
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("a path where the volume never was is gone: %v", err)
	}
}

func TestStatsAndExpansionNeedThePath(t *testing.T) {
	_, driver := start(t, everything())
	id, staging := staged(t, driver, single())
	stats, err := driver.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: staging})
	expectCode(t, err, codes.OK)
	if got := stats.GetUsage()[0].GetTotal(); got != gib {
		t.Errorf("the volume has %d bytes, want 1 GiB", got)
	}
	_, err = driver.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: id, VolumePath: "/nowhere"})
	expectCode(t, err, codes.NotFound)
	expand := &csi.NodeExpandVolumeRequest{VolumeId: id, VolumePath: staging,
		CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * gib}}
	_, err = driver.NodeExpandVolume(t.Context(), expand)
	expectCode(t, err, codes.OutOfRange) // the controller has not expanded it
}
