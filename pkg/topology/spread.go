package topology

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// spread returns a number for a claim's name, by which claims are dealt to the
// places. A StatefulSet calls its claims TEMPLATE-SET-ORDINAL: the ordinal is
// added to the hash of SET, so that replicas go round the places, and all claims
// of one replica meet in one place. The numbers are those of csi-provisioner, so
// that a set that grows goes on where it was.
func spread(claim string) uint32 {
	name, ordinal := claim, uint32(0)
	if base, number, found := cutLast(claim); found {
		if parsed, err := strconv.ParseUint(number, 10, 32); err == nil {
			name, ordinal = base, uint32(parsed)
			if _, set, found := cutLast(base); found {
				name = set
			}
		}
	}
	hash := fnv.New32()
	_, _ = hash.Write([]byte(name)) // never fails
	return hash.Sum32() + ordinal
}

// cutLast cuts the text at its last dash.
func cutLast(text string) (before, after string, found bool) {
	dash := strings.LastIndexByte(text, '-')
	if dash < 0 {
		return text, "", false
	}
	return text[:dash], text[dash+1:], true
}
