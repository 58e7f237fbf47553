package provision

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// VolumeName returns the name of a claim's volume, in the storage system and as an
// object: the same for every try.
func VolumeName(settings Settings, claim types.UID) string {
	uid := string(claim)
	if settings.NameLength >= 0 {
		uid = strings.ReplaceAll(uid, "-", "")
		uid = uid[:min(settings.NameLength, len(uid))]
	}
	return settings.NamePrefix + "-" + uid
}
