package library

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"

	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// buildExample builds the example once.
var buildExample = sync.OnceValues(func() (string, error) {
	path := filepath.Join(running.dir, "hostpath-provisioner")
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", path, "./examples/hostpath-provisioner")
	command.Dir, command.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the example: %w: %s", err, output)
	}
	return path, nil
})

// The program is that of the example, with the flags of its Deployment.
func TestExampleProgramOnBothControllers(t *testing.T) {
	var mu sync.Mutex
	metrics := map[string][]string{}
	t.Run("group", func(t *testing.T) {
		for _, runsOn := range []string{"v10", "exeunt"} {
			t.Run(runsOn, func(t *testing.T) {
				t.Parallel()
				s := prepare(t, engine(runsOn))
				port := s.startExample(runsOn)
				claim := s.createClaim("claim", s.name)
				volume := s.awaitBound(claim.Name)
				if !s.stored(directory(volume)) {
					t.Errorf("there is no directory %s", directory(volume))
				}
				s.deleteClaim(claim.Name)
				s.awaitVolumeGone(volume.Name)
				if s.stored(directory(volume)) {
					t.Errorf("the directory %s is left behind", directory(volume))
				}
				found := s.metricNames(port)
				mu.Lock()
				defer mu.Unlock()
				metrics[runsOn] = found
			})
		}
	})
	if len(metrics["v10"]) < 4 || !slices.Equal(metrics["v10"], metrics["exeunt"]) {
		t.Errorf("metrics differ: %v", metrics)
	}
}

// startExample starts the example and returns the port of its metrics.
func (s *scene) startExample(runsOn string) int {
	s.t.Helper()
	program, err := buildExample()
	s.must(err, "build the example")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err, "find a free port")
	port := free.Addr().(*net.TCPAddr).Port
	s.must(free.Close(), "release the port")
	s.process, err = sandbox.Start(s.ctx, sandbox.Program{
		Path: program, Env: []string{"POD_NAMESPACE=" + account}, LogFile: filepath.Join(running.dir, s.name+"-example.log"),
		Args: []string{
			"--controller=" + runsOn, "--name=" + s.name, "--base-dir=" + s.baseDir, "--kubeconfig=" + running.identity,
			fmt.Sprintf("--metrics-port=%d", port),
		},
	})
	s.must(err, "start the example")
	return port
}

// metricName finds the metrics of v10.
var metricName = regexp.MustCompile(`(?m)^# TYPE (controller_\w+) `)

// metricNames returns the names of the metrics of claims and volumes.
func (s *scene) metricNames(port int) []string {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", port), nil)
	s.must(err, "make request")
	response, err := http.DefaultClient.Do(request)
	s.must(err, "read metrics")
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	s.must(err, "read metrics")
	var names []string
	for _, found := range metricName.FindAllSubmatch(body, -1) {
		names = append(names, string(found[1]))
	}
	slices.Sort(names)
	return names
}
