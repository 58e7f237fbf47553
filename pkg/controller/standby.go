package controller

import (
	"maps"
	"slices"
	"time"
)

// fewest is how many keys a standby keeps without asking whether they are of any use.
const fewest = 1000

// standby keeps the keys that come before a loop runs, each with the time that it is
// due at. Objects come and go for as long as another process leads, so it must not
// keep a key for each: it drops those that would find nothing, but never the latest.
// Its size is at most about twice that of what there is. The loop locks it.
type standby struct {
	// exists says whether there is anything to do for a key.
	exists func(key string) bool
	// recent come after earlier, which are looked through once recent are as many as
	// limit.
	recent, earlier map[string]time.Time
	limit           int
}

func newStandby() *standby {
	return &standby{exists: func(string) bool { return true }, recent: map[string]time.Time{}, earlier: map[string]time.Time{}, limit: fewest}
}

// add keeps the key, due at the time or when it was due already.
func (s *standby) add(key string, due time.Time) {
	for _, kept := range []map[string]time.Time{s.recent, s.earlier} {
		if before, known := kept[key]; known && before.Before(due) {
			due = before
		}
	}
	delete(s.earlier, key)
	s.recent[key] = due
	if len(s.recent) >= s.limit {
		s.sift()
	}
}

// sift drops the earlier keys that there is nothing to do for. It looks at no more
// keys than have come since the last time, but for those that it has to keep.
func (s *standby) sift() {
	for key := range s.earlier {
		if !s.exists(key) {
			delete(s.earlier, key)
		}
	}
	s.limit = max(fewest, len(s.earlier))
	for key, due := range s.recent {
		s.earlier[key] = due
	}
	s.recent = map[string]time.Time{}
}

// hand gives all keys away, those first that have been due for longest.
func (s *standby) hand(enqueue func(key string, due time.Time)) {
	maps.Copy(s.recent, s.earlier) // they have no key in common
	for _, key := range slices.SortedFunc(maps.Keys(s.recent), func(a, b string) int { return s.recent[a].Compare(s.recent[b]) }) {
		enqueue(key, s.recent[key])
	}
}
