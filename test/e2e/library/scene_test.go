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

	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// withoutProvisioner is the cluster of all tests: our pv-controller, and the provisioners
// that the tests start.
var withoutProvisioner = harness.Setup{NoProvisioner: true}

// scene is one test: a provisioner, a directory and two classes of its own.
type scene struct {
	*harness.Session
	// name is that of the provisioner, the namespace and the class with policy Delete.
	name    string
	baseDir string
	engine  engine
	// how are the settings of the process.
	how settings
	// kubeconfig is that of the provisioner's service account.
	kubeconfig string
	server     *httptest.Server
	process    *sandbox.Process
	runs       int

	mu    sync.Mutex
	calls []call
	react func(call) ending
}

// call is one finished call of the provisioner.
type call struct{ method, volume string }

// enter starts a provisioner on the engine; change may alter its settings.
func enter(t *testing.T, on engine, change ...func(*settings)) *scene {
	t.Helper()
	s := prepare(t, on)
	for _, f := range change {
		f(&s.how)
	}
	s.start()
	return s
}

// prepare makes what a provisioner on the engine needs, in a cluster without one.
func prepare(t *testing.T, on engine) *scene {
	t.Helper()
	s := &scene{Session: harness.Join(t, withoutProvisioner), engine: on, baseDir: t.TempDir()}
	s.name, s.kubeconfig = s.Namespace, identityIn(s.Session)
	s.heal()
	s.server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.server.Close)
	s.createClass(s.name, v1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate)
	s.createClass(s.retained(), v1.PersistentVolumeReclaimRetain, storagev1.VolumeBindingImmediate)
	s.how = settings{Engine: on, Name: s.name, BaseDir: s.baseDir, Kubeconfig: s.kubeconfig, Hooks: s.server.URL}
	t.Cleanup(func() {
		if s.process != nil {
			_ = s.process.Kill()
		}
	})
	return s
}

func (s *scene) createClass(name string, policy v1.PersistentVolumeReclaimPolicy, mode storagev1.VolumeBindingMode) {
	s.T.Helper()
	s.CreateStorageClass(harness.NewClass(name, s.name, policy, mode))
}

// retained is the class with policy Retain.
func (s *scene) retained() string { return s.name + "-retain" }

// answer is called by the provisioner after each call of the storage system.
func (s *scene) answer(w http.ResponseWriter, r *http.Request) {
	now := call{r.URL.Query().Get("method"), r.URL.Query().Get("volume")}
	s.mu.Lock()
	s.calls = append(s.calls, now)
	react := s.react
	s.mu.Unlock()
	_, _ = fmt.Fprint(w, string(react(now)))
}

// on sets what is answered from now on.
func (s *scene) on(react func(call) ending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.react = react
}

// end has calls of the method end so, and all others succeed.
func (s *scene) end(method string, so ending) {
	s.on(func(c call) ending {
		if c.method == method {
			return so
		}
		return succeeds
	})
}

// heal has all calls succeed.
func (s *scene) heal() { s.end("", succeeds) }

// count returns how often the method was called for the volume.
func (s *scene) count(method, volume string) int {
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
func (s *scene) start() {
	s.T.Helper()
	text, err := json.Marshal(s.how)
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
func (s *scene) kill() {
	s.T.Helper()
	if err := s.process.Kill(); err != nil {
		s.T.Errorf("kill provisioner: %v", err)
	}
}

// stop ends the provisioner as a rollout does.
func (s *scene) stop() {
	s.T.Helper()
	s.Must(s.process.Stop(s.Ctx), "stop provisioner")
}

// createVolume creates a static volume with a directory in a class of its own.
func (s *scene) createVolume(policy v1.PersistentVolumeReclaimPolicy) *v1.PersistentVolume {
	s.T.Helper()
	path := filepath.Join(s.baseDir, "static")
	s.Must(os.Mkdir(path, 0o700), "make directory")
	return s.CreateVolume("static", policy, s.inDirectory(path))
}

// inDirectory gives a static volume the directory, and a class that no other claim names.
func (s *scene) inDirectory(path string) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) {
		v.Spec.StorageClassName = s.name + "-static"
		v.Spec.CSI.Driver, v.Spec.CSI.VolumeHandle = s.name, path
	}
}

// passQueues sends another claim through all queues, from its creation until its volume
// is deleted: what was decided before is carried out by then.
func (s *scene) passQueues() {
	s.T.Helper()
	s.CreateClaim("marker", s.name)
	volume := s.AwaitBound("marker")
	s.DeleteClaim("marker")
	s.AwaitVolumeGone(volume.Name)
	s.AwaitClaimGone("marker")
}

// stored reports whether the storage system has the volume.
func (s *scene) stored(directory string) bool {
	s.T.Helper()
	_, err := os.Stat(directory)
	if err != nil && !os.IsNotExist(err) {
		s.T.Fatalf("look for directory: %v", err)
	}
	return err == nil
}

// recorded returns the directories that PersistentVolumes of the provisioner have.
func (s *scene) recorded() []string {
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
func (s *scene) leaked() []string {
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
