package library

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// withoutProvisioner is the cluster of all tests: our pv-controller, and the provisioners
// that the tests start.
var withoutProvisioner = harness.Setup{NoProvisioner: true}

// fixture has the objects of one test: a provisioner, a directory and two classes of its own.
type fixture struct {
	*harness.Session
	// name is that of the provisioner, the namespace and the class with policy Delete.
	name    string
	baseDir string
	engine  engine
	// how are the settings of the process.
	settings settings
	// kubeconfig is that of the provisioner's service account.
	kubeconfig string
	server     *httptest.Server
	process    *sandbox.Process
	runs       int

	mu    sync.Mutex
	calls []call
	react func(call) result
}

// call is one finished call of the provisioner.
type call struct{ method, volume string }

// startFixture starts a provisioner on the engine; change may alter its settings.
func startFixture(t *testing.T, on engine, change ...func(*settings)) *fixture {
	t.Helper()
	s := newFixture(t, on)
	for _, f := range change {
		f(&s.settings)
	}
	s.start()
	return s
}

// newFixture creates the objects that a provisioner on the engine needs, without the provisioner.
func newFixture(t *testing.T, on engine) *fixture {
	t.Helper()
	s := &fixture{Session: harness.Join(t, withoutProvisioner), engine: on, baseDir: t.TempDir()}
	s.name, s.kubeconfig = s.Namespace, identityIn(s.Session)
	s.succeed()
	s.server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.server.Close)
	s.createClass(s.name, v1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate)
	s.createClass(s.retained(), v1.PersistentVolumeReclaimRetain, storagev1.VolumeBindingImmediate)
	s.settings = settings{Engine: on, Name: s.name, BaseDir: s.baseDir, Kubeconfig: s.kubeconfig, Hooks: s.server.URL}
	t.Cleanup(func() {
		if s.process != nil {
			_ = s.process.Kill()
		}
	})
	return s
}

func (s *fixture) createClass(name string, policy v1.PersistentVolumeReclaimPolicy, mode storagev1.VolumeBindingMode) {
	s.T.Helper()
	s.CreateStorageClass(harness.NewClass(name, s.name, policy, mode))
}

// retained is the class with policy Retain.
func (s *fixture) retained() string { return s.name + "-retain" }

// answer is called by the provisioner after each call of the storage system.
func (s *fixture) answer(w http.ResponseWriter, r *http.Request) {
	now := call{r.URL.Query().Get("method"), r.URL.Query().Get("volume")}
	s.mu.Lock()
	s.calls = append(s.calls, now)
	react := s.react
	s.mu.Unlock()
	_, _ = fmt.Fprint(w, string(react(now)))
}

// setReaction sets the function that returns the results of later calls.
func (s *fixture) setReaction(react func(call) result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.react = react
}

// setResult gives calls of the method the result. All other calls succeed.
func (s *fixture) setResult(method string, r result) {
	s.setReaction(func(c call) result {
		if c.method == method {
			return r
		}
		return succeeds
	})
}

// succeed makes all calls succeed.
func (s *fixture) succeed() { s.setResult("", succeeds) }

// count returns how often the method was called for the volume.
func (s *fixture) count(method, volume string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, c := range s.calls {
		if c == (call{method, volume}) {
			count++
		}
	}
	return count
}

// start starts the provisioner's process.
func (s *fixture) start() {
	s.T.Helper()
	text, err := json.Marshal(s.settings)
	s.Must(err, "write settings")
	s.runs++
	program, err := os.Executable()
	s.Must(err, "find this binary")
	s.process, err = sandbox.Start(s.Ctx, sandbox.Program{
		Name: "provisioner", Path: program, Env: []string{settingsVariable + "=" + string(text), "POD_NAMESPACE=" + account},
		LogFile: filepath.Join(s.Dir, fmt.Sprintf("%s-%d.log", s.name, s.runs)),
	})
	s.Must(err, "start provisioner")
}

// kill ends the provisioner as a crash does.
func (s *fixture) kill() {
	s.T.Helper()
	if err := s.process.Kill(); err != nil {
		s.T.Errorf("kill provisioner: %v", err)
	}
}

// stop ends the provisioner as a rollout does.
func (s *fixture) stop() {
	s.T.Helper()
	s.Must(s.process.Stop(s.Ctx), "stop provisioner")
}

// createVolume creates a static volume with a directory in a class of its own.
func (s *fixture) createVolume(policy v1.PersistentVolumeReclaimPolicy) *v1.PersistentVolume {
	s.T.Helper()
	path := filepath.Join(s.baseDir, "static")
	s.Must(os.Mkdir(path, 0o700), "make directory")
	return s.CreateVolume("static", policy, s.inDirectory(path))
}

// inDirectory gives a static volume the directory, and a class that no other claim names.
func (s *fixture) inDirectory(path string) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) {
		v.Spec.StorageClassName = s.name + "-static"
		v.Spec.CSI.Driver, v.Spec.CSI.VolumeHandle = s.name, path
	}
}

// passQueues sends another claim through all queues, from its creation until its volume
// is deleted. All earlier objects are reconciled by then.
func (s *fixture) passQueues() {
	s.T.Helper()
	s.CreateClaim("probe", s.name)
	volume := s.AwaitBound("probe")
	s.DeleteClaim("probe")
	s.AwaitVolumeGone(volume.Name)
	s.AwaitClaimGone("probe")
}

// stored reports whether the storage system has the volume.
func (s *fixture) stored(directory string) bool {
	s.T.Helper()
	_, err := os.Stat(directory)
	if err != nil && !os.IsNotExist(err) {
		s.T.Fatalf("look for directory: %v", err)
	}
	return err == nil
}

// recorded returns the directories of all PersistentVolumes.
func (s *fixture) recorded() []string {
	s.T.Helper()
	list, err := s.Client.CoreV1().PersistentVolumes().List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "list volumes")
	var found []string
	for i := range list.Items {
		found = append(found, directory(&list.Items[i]))
	}
	return found
}

// leaked returns the directories that no PersistentVolume has.
func (s *fixture) leaked() []string {
	s.T.Helper()
	entries, err := os.ReadDir(s.baseDir)
	s.Must(err, "list directories")
	recorded := s.recorded()
	var left []string
	for _, entry := range entries {
		if path := filepath.Join(s.baseDir, entry.Name()); !slices.Contains(recorded, path) {
			left = append(left, path)
		}
	}
	return left
}

// directory returns the directory of the volume.
func directory(volume *v1.PersistentVolume) string {
	switch {
	case volume.Spec.HostPath != nil:
		return volume.Spec.HostPath.Path
	case volume.Spec.CSI != nil:
		return volume.Spec.CSI.VolumeHandle
	}
	return ""
}
