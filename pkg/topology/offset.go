package topology

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// preferredOffset returns the number that, modulo the number of segments, is the index
// of the claim's preferred segment. Claims of a StatefulSet are named
// TEMPLATE-SET-ORDINAL: the offset is the hash of SET plus the ordinal, so that replicas
// rotate through the segments and all claims of one replica share a segment. The numbers
// are those of csi-provisioner, so that a growing set continues the rotation.
func preferredOffset(claim string) uint32 {
	name, ordinal := claim, uint32(0)
	if base, number, found := cutLastDash(claim); found {
		if parsed, err := strconv.ParseUint(number, 10, 32); err == nil {
			name, ordinal = base, uint32(parsed)
			if _, set, found := cutLastDash(base); found {
				name = set
			}
		}
	}
	hash := fnv.New32()
	_, _ = hash.Write([]byte(name)) // never fails
	return hash.Sum32() + ordinal
}

// cutLastDash cuts the text at its last dash.
func cutLastDash(text string) (before, after string, found bool) {
	dash := strings.LastIndexByte(text, '-')
	if dash < 0 {
		return text, "", false
	}
	return text[:dash], text[dash+1:], true
}
