package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// profileSeconds is the length of one profile.
const profileSeconds = 5

// profile takes one CPU profile after the other of the API server and of each program, until stop
// is called; stop waits for the last ones. "go tool pprof" adds the files of a phase.
func (s *session) profile(ctx context.Context, phase string) (stop func() error) {
	if s.profiles == "" {
		return func() error { return nil }
	}
	end := make(chan struct{})
	var running errgroup.Group
	for process, take := range s.profilers() {
		running.Go(func() error {
			for i := 0; ; i++ {
				name := fmt.Sprintf("%s-%d-%s-%s-%s-%d.pprof", s.turn.Scenario.Name, s.turn.Round, s.turn.Side, phase, process, i)
				if err := s.takeProfile(ctx, name, take); err != nil {
					return err
				}
				select {
				case <-end:
					return nil
				default:
				}
			}
		})
	}
	return func() error {
		close(end)
		return running.Wait()
	}
}

// profilers returns functions that take a profile of the next seconds, by process.
func (s *session) profilers() map[string]func(context.Context) ([]byte, error) {
	profilers := map[string]func(context.Context) ([]byte, error){
		"server": func(ctx context.Context) ([]byte, error) {
			return s.client.CoreV1().RESTClient().Get().AbsPath(ProfilePath).Param("seconds", strconv.Itoa(profileSeconds)).
				DoRaw(ctx)
		},
	}
	for process, address := range s.programs.Profiles {
		profilers[strings.ReplaceAll(process, " ",
			"-")] = func(ctx context.Context) ([]byte, error) { return readProfile(ctx, address) }
	}
	return profilers
}

// readProfile takes a profile of a program, whose certificate is its own.
func readProfile(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s?seconds=%d", address, profileSeconds),
		nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", response.Status)
	}
	return io.ReadAll(response.Body)
}

// takeProfile writes a profile of the next seconds.
func (s *session) takeProfile(ctx context.Context, name string, take func(context.Context) ([]byte, error)) error {
	text, err := take(ctx)
	if err != nil {
		return fmt.Errorf("take profile %s: %w", name, err)
	}
	if err := os.MkdirAll(s.profiles, 0o755); err != nil {
		return fmt.Errorf("make directory of profiles: %w", err)
	}
	if err := os.WriteFile(filepath.Join(s.profiles, name), text, 0o644); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}
