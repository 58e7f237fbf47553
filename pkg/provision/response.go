package provision

import (
	"fmt"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/exeunt-io/exeunt/pkg/topology"
)

// longestHandle is the greatest length of a volume handle, in bytes. The CSI specification
// ("Size Limits") allows 128 bytes, but widely used drivers return paths of up to 300.
const longestHandle = 512

// Unusable returns the reason why the claim cannot use the returned volume, "" for a usable
// volume. hasTopology reports whether the driver has topology, which is recorded.
func Unusable(request *csi.CreateVolumeRequest, volume *csi.Volume, hasTopology bool) string {
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
	if flaw := wrongSource(request.GetVolumeContentSource(), volume.GetContentSource()); flaw != "" || !hasTopology {
		return flaw
	}
	return topology.Invalid(volume.GetAccessibleTopology())
}

// Elsewhere returns why the returned volume is not where it was requested, "" if it is.
func Elsewhere(request *csi.CreateVolumeRequest, volume *csi.Volume) string {
	return topology.Elsewhere(request.GetAccessibilityRequirements(), volume.GetAccessibleTopology())
}

func unprintable(r rune) bool {
	return r < ' ' || r == 0x7f || r == '\uFFFD'
}

// wrongSource compares the kind of the content source with the requested kind, and returns
// the difference, "" for none. Drivers spell identifiers in several ways.
func wrongSource(wanted, got *csi.VolumeContentSource) string {
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
