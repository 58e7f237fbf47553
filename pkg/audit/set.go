package audit

import "hash/maphash"

// seed makes the hashes of this process.
var seed = maphash.MakeSeed()

func hash(text string) uint64 { return maphash.String(seed, text) }

// set is a set of texts, kept as hashes. The set has a text that was not added only if two
// hashes are equal by chance.
type set map[uint64]struct{}

func (s set) add(text string) {
	if text != "" {
		s[hash(text)] = struct{}{}
	}
}

func (s set) has(text string) bool {
	_, found := s[hash(text)]
	return found && text != ""
}
