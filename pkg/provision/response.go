package provision

import (
	"fmt"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/exeunt-io/exeunt/pkg/topology"
)

// longestHandle is in bytes. The CSI specification ("Size Limits") says 128, which
// handles of drivers in wide use exceed: cloud disks are called by paths of up to
// 300 bytes. A longer handle is an error of the driver.
const longestHandle = 512

// Unusable returns why the volume that the driver returned cannot be used, "" if it can.
func Unusable(request *csi.CreateVolumeRequest, volume *csi.Volume) string {
	required := request.GetCapacityRange().GetRequiredBytes()
	switch id, size := volume.GetVolumeId(), volume.GetCapacityBytes(); {
	case id == "":
		return "the driver returned no volume handle"
	case len(id) > longestHandle:
		return fmt.Sprintf("the driver returned a volume handle of %d bytes; at most %d make sense", len(id), longestHandle)
	case strings.ContainsFunc(id, unprintable):
		return "the driver returned a volume handle with control characters or broken text"
	case size < 0 || size != 0 && size < required:
		return fmt.Sprintf("created volume capacity %d less than requested capacity %d bytes", size, required)
	}
	if flaw := misfilled(request.GetVolumeContentSource(), volume.GetContentSource()); flaw != "" {
		return flaw
	}
	return topology.Unusable(request.GetAccessibilityRequirements(), volume.GetAccessibleTopology())
}

func unprintable(r rune) bool {
	return r < ' ' || r == 0x7f || r == '\uFFFD'
}

// misfilled returns why the content source of the volume is not the requested one. Only the
// kind is compared: drivers spell identifiers in several ways.
func misfilled(wanted, got *csi.VolumeContentSource) string {
	switch {
	case wanted == nil:
		return ""
	case wanted.GetSnapshot() != nil && got.GetSnapshot() == nil:
		return "volume content source missing: the driver returned a volume that was not made from the snapshot"
	case wanted.GetVolume() != nil && got.GetVolume() == nil:
		return "volume content source missing: the driver returned a volume that was not made from the source volume"
	}
	return ""
}
