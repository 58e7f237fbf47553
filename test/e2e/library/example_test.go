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
	"strings"
	"sync"
	"testing"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// buildExample builds the example.
func buildExample(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hostpath-provisioner")
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-tags=grpcnotrace", "-o",
		path, "./examples/hostpath-provisioner")
	command.Dir, command.Env = harness.InCheckout(), append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v: %s", err, output)
	}
	return path
}

// The program is that of the example, with the flags of its Deployment.
func TestExampleProgramOnBothControllers(t *testing.T) {
	harness.Parallel(t, withoutProvisioner)
	program := buildExample(t)
	var mu sync.Mutex
	metrics := map[string][]string{}
	t.Run("group", func(t *testing.T) {
		for _, runsOn := range []string{"v10", "exeunt"} {
			t.Run(runsOn, func(t *testing.T) {
				s := newFixture(t, engine(runsOn))
				port := s.startExample(program, runsOn)
				claim := s.CreateClaim("claim", s.name)
				volume := s.AwaitBound(claim.Name)
				if !s.stored(directory(volume)) {
					t.Errorf("there is no directory %s", directory(volume))
				}
				s.DeleteClaim(claim.Name)
				s.AwaitVolumeGone(volume.Name)
				if s.stored(directory(volume)) {
					t.Errorf("the directory %s is left behind", directory(volume))
				}
				if err := sandbox.Refused(s.Plane.AuditLog, "system:serviceaccount:"+account); err != nil {
					t.Error(err)
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
func (s *fixture) startExample(program, runsOn string) int {
	s.T.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	s.Must(err, "find a free port")
	port := free.Addr().(*net.TCPAddr).Port
	s.Must(free.Close(), "release the port")
	s.process, err = sandbox.Start(s.Ctx, sandbox.Program{
		Path: program, Env: []string{"POD_NAMESPACE=" + account}, LogFile: filepath.Join(s.Dir, s.name+"-example.log"),
		Args: []string{
			"--controller=" + runsOn, "--name=" + s.name, "--base-dir=" + s.baseDir, "--kubeconfig=" + s.kubeconfig,
			fmt.Sprintf("--metrics-port=%d", port),
		},
	})
	s.Must(err, "start the example")
	return port
}

// metricName finds the metrics of v10.
var metricName = regexp.MustCompile(`(?m)^# TYPE (controller_\w+) `)

// metricNames returns the names of the metrics of claims and volumes, without those of
// failures: v10 fails to delete a PersistentVolume that its stale cache still has.
func (s *fixture) metricNames(port int) []string {
	s.T.Helper()
	request, err := http.NewRequestWithContext(s.Ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", port),
		nil)
	s.Must(err, "make request")
	response, err := http.DefaultClient.Do(request)
	s.Must(err, "read metrics")
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	s.Must(err, "read metrics")
	var names []string
	for _, found := range metricName.FindAllSubmatch(body, -1) {
		if name := string(found[1]); !strings.HasSuffix(name, "_failed_total") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
