package claim

import (
	"sync"
	"time"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// served records when a claim of each provisioner was last bound. Its zero value is ready.
type served struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// add records that a claim of the provisioner is bound now.
func (s *served) add(provisioner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[string]time.Time{}
	}
	s.last[provisioner] = time.Now()
}

// lately reports whether a claim of the provisioner was bound within storage.QuietWait.
func (s *served) lately(provisioner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.last[provisioner]
	return known && time.Since(last) <= storage.QuietWait
}
