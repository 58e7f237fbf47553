package library

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// scene is one test: a provisioner, a directory, two classes and a namespace of its own.
type scene struct {
	t      *testing.T
	ctx    context.Context
	client kubernetes.Interface
	// name is that of the provisioner, the namespace and the class with policy Delete.
	name    string
	baseDir string
	engine  engine
	// how are further settings of the process.
	how     settings
	server  *httptest.Server
	process *sandbox.Process
	runs    int

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

// prepare starts the cluster and makes what a provisioner on the engine needs.
func prepare(t *testing.T, on engine) *scene {
	t.Helper()
	if err := startOnce(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	s := &scene{t: t, ctx: ctx, client: running.plane.Client(), engine: on, baseDir: t.TempDir(), react: func(call) ending { return succeeds }}
	s.server = httptest.NewServer(http.HandlerFunc(s.answer))
	t.Cleanup(s.server.Close)
	namespace, err := s.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "library-"}}, metav1.CreateOptions{})
	s.must(err, "create namespace")
	s.name = namespace.Name
	s.createClass(s.name, v1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate)
	s.createClass(s.retained(), v1.PersistentVolumeReclaimRetain, storagev1.VolumeBindingImmediate)
	s.how = settings{Engine: on, Name: s.name, BaseDir: s.baseDir, Kubeconfig: running.identity, Hooks: s.server.URL}
	t.Cleanup(func() {
		if s.process != nil {
			_ = s.process.Kill()
		}
	})
	return s
}

func (s *scene) createClass(name string, policy v1.PersistentVolumeReclaimPolicy, mode storagev1.VolumeBindingMode) {
	s.t.Helper()
	_, err := s.client.StorageV1().StorageClasses().Create(s.ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: s.name, ReclaimPolicy: &policy, VolumeBindingMode: &mode,
	}, metav1.CreateOptions{})
	s.must(err, "create class")
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
	s.t.Helper()
	text, err := json.Marshal(s.how)
	s.must(err, "write settings")
	s.runs++
	program, err := os.Executable()
	s.must(err, "find this binary")
	s.process, err = sandbox.Start(s.ctx, sandbox.Program{
		Name: "provisioner", Path: program, Env: []string{settingsVariable + "=" + string(text), "POD_NAMESPACE=" + account},
		LogFile: filepath.Join(running.dir, fmt.Sprintf("%s-%d.log", s.name, s.runs)),
	})
	s.must(err, "start provisioner")
}

// kill ends the provisioner as a crash does.
func (s *scene) kill() {
	s.t.Helper()
	if err := s.process.Kill(); err != nil {
		s.t.Errorf("kill provisioner: %v", err)
	}
}

// stop ends the provisioner as a rollout does.
func (s *scene) stop() {
	s.t.Helper()
	s.must(s.process.Stop(s.ctx), "stop provisioner")
}

func (s *scene) must(err error, what string) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// until waits until the condition holds.
func (s *scene) until(what string, holds func() bool) {
	s.t.Helper()
	err := wait.PollUntilContextCancel(s.ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		s.t.Fatalf("waiting until %s: %v; logs in %s", what, err, running.dir)
	}
}

func (s *scene) createClaim(name, class string) *v1.PersistentVolumeClaim {
	s.t.Helper()
	claim, err := s.client.CoreV1().PersistentVolumeClaims(s.name).Create(s.ctx, s.newClaim(name, class), metav1.CreateOptions{})
	s.must(err, "create claim")
	return claim
}

func (s *scene) newClaim(name, class string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: &class, AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")}},
		},
	}
}

// createVolume creates a static volume with a directory in a class of its own.
func (s *scene) createVolume(policy v1.PersistentVolumeReclaimPolicy) *v1.PersistentVolume {
	s.t.Helper()
	directory := filepath.Join(s.baseDir, "static")
	s.must(os.Mkdir(directory, 0o700), "make directory")
	volume, err := s.client.CoreV1().PersistentVolumes().Create(s.ctx, s.newVolume(s.name+"-static", policy, directory), metav1.CreateOptions{})
	s.must(err, "create volume")
	return volume
}

func (s *scene) newVolume(name string, policy v1.PersistentVolumeReclaimPolicy, directory string) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: policy, StorageClassName: s.name + "-static",
			AccessModes:            []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Capacity:               v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: s.name, VolumeHandle: directory}},
		},
	}
}

func (s *scene) deleteClaim(name string) {
	s.t.Helper()
	s.must(s.client.CoreV1().PersistentVolumeClaims(s.name).Delete(s.ctx, name, metav1.DeleteOptions{}), "delete claim")
}

func (s *scene) deleteVolume(name string) {
	s.t.Helper()
	s.must(s.client.CoreV1().PersistentVolumes().Delete(s.ctx, name, metav1.DeleteOptions{}), "delete volume")
}

func (s *scene) setPolicy(volume string, policy v1.PersistentVolumeReclaimPolicy) {
	s.t.Helper()
	body := fmt.Appendf(nil, `{"spec":{"persistentVolumeReclaimPolicy":%q}}`, policy)
	_, err := s.client.CoreV1().PersistentVolumes().Patch(s.ctx, volume, types.MergePatchType, body, metav1.PatchOptions{})
	s.must(err, "change reclaim policy")
}

// awaitVolume returns the volume once the condition holds.
func (s *scene) awaitVolume(name, what string, holds func(*v1.PersistentVolume) bool) *v1.PersistentVolume {
	s.t.Helper()
	var volume *v1.PersistentVolume
	s.until("volume "+name+" "+what, func() bool {
		var err error
		volume, err = s.client.CoreV1().PersistentVolumes().Get(s.ctx, name, metav1.GetOptions{})
		return err == nil && holds(volume)
	})
	return volume
}

func (s *scene) awaitVolumeGone(name string) {
	s.t.Helper()
	s.until("volume "+name+" is gone", func() bool {
		_, err := s.client.CoreV1().PersistentVolumes().Get(s.ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func (s *scene) awaitClaimGone(name string) {
	s.t.Helper()
	s.until("claim "+name+" is gone", func() bool {
		_, err := s.client.CoreV1().PersistentVolumeClaims(s.name).Get(s.ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// awaitBound returns the volume that the claim is bound to.
func (s *scene) awaitBound(claim string) *v1.PersistentVolume {
	s.t.Helper()
	name := ""
	s.until("claim "+claim+" is bound", func() bool {
		bound, err := s.client.CoreV1().PersistentVolumeClaims(s.name).Get(s.ctx, claim, metav1.GetOptions{})
		if err == nil && bound.Status.Phase == v1.ClaimBound {
			name = bound.Spec.VolumeName
		}
		return name != ""
	})
	return s.awaitVolume(name, "is bound", func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeBound })
}

// passQueues sends another claim through all queues, from its creation until its volume
// is deleted: what was decided before is carried out by then.
func (s *scene) passQueues() {
	s.t.Helper()
	s.createClaim("marker", s.name)
	volume := s.awaitBound("marker")
	s.deleteClaim("marker")
	s.awaitVolumeGone(volume.Name)
	s.awaitClaimGone("marker")
}

// stored reports whether the storage system has the volume.
func (s *scene) stored(directory string) bool {
	s.t.Helper()
	_, err := os.Stat(directory)
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatalf("look for directory: %v", err)
	}
	return err == nil
}

// recorded returns the directories that PersistentVolumes of the provisioner have.
func (s *scene) recorded() []string {
	s.t.Helper()
	list, err := s.client.CoreV1().PersistentVolumes().List(s.ctx, metav1.ListOptions{})
	s.must(err, "list volumes")
	var found []string
	for i := range list.Items {
		found = append(found, directory(&list.Items[i]))
	}
	return found
}

// leaked returns the directories that no PersistentVolume has.
func (s *scene) leaked() []string {
	s.t.Helper()
	entries, err := os.ReadDir(s.baseDir)
	s.must(err, "list directories")
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
