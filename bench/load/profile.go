package load

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// profileSeconds is the length of one profile.
const profileSeconds = 5

// profile takes one CPU profile of the API server after the other until stop is called; stop
// waits for the last one. "go tool pprof" adds the files of a phase.
func (s *session) profile(ctx context.Context, phase string) (stop func() error) {
	if s.profiles == "" {
		return func() error { return nil }
	}
	end, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			err := s.takeProfile(ctx, fmt.Sprintf("%s-%d-%s-%s-%d.pprof", s.turn.Scenario.Name, s.turn.Round, s.turn.Side, phase, i))
			select {
			case <-end:
			default:
				if err == nil {
					continue
				}
			}
			done <- err
			return
		}
	}()
	return func() error {
		close(end)
		return <-done
	}
}

// takeProfile writes a profile of the next seconds.
func (s *session) takeProfile(ctx context.Context, name string) error {
	text, err := s.client.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", strconv.Itoa(profileSeconds)).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("take profile of the API server: %w", err)
	}
	if err := os.MkdirAll(s.profiles, 0o755); err != nil {
		return fmt.Errorf("make directory of profiles: %w", err)
	}
	if err := os.WriteFile(filepath.Join(s.profiles, name), text, 0o644); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}
