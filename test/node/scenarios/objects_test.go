package scenarios

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/node/internal/cluster"
	"github.com/exeunt-io/exeunt/test/node/internal/driver"
)

// text is what the pods write.
const text = "kept until the end"

// workload is a namespace with a pod that uses a claim with a volume.
type workload struct {
	*cluster.Cluster
	namespace, pv, handle string
}

// createWorkload creates a pod and its claim, and waits until the pod has written a file.
func createWorkload(t *testing.T, c *cluster.Cluster, namespace string) *workload {
	t.Helper()
	w := &workload{Cluster: c, namespace: namespace}
	if _, err := c.Client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.createClaim(t, "data")
	w.eventually(t, "the pod is created", func(ctx context.Context) error { // its service account comes later
		_, err := c.Client.CoreV1().Pods(namespace).Create(ctx, w.writer(), metav1.CreateOptions{})
		return err
	})
	w.awaitFile(t)
	return w
}

// createClaim creates a claim, whose volume is created for its first pod.
func (w *workload) createClaim(t *testing.T, name string) {
	t.Helper()
	class := "directory"
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
		},
	}
	_, err := w.Client.CoreV1().PersistentVolumeClaims(w.namespace).Create(t.Context(), claim, metav1.CreateOptions{})
	must(t, err)
}

// awaitProbe waits until a further claim was created and deleted: the controllers have then
// seen what happened before.
func (w *workload) awaitProbe(t *testing.T) {
	t.Helper()
	w.createClaim(t, "probe")
	claims := w.Client.CoreV1().PersistentVolumeClaims(w.namespace)
	w.eventually(t, "the claim has its finalizer", func(ctx context.Context) error {
		claim, err := claims.Get(ctx, "probe", metav1.GetOptions{})
		if err == nil && len(claim.Finalizers) == 0 {
			err = fmt.Errorf("the claim has no finalizer")
		}
		return err
	})
	must(t, claims.Delete(t.Context(), "probe", metav1.DeleteOptions{}))
	w.eventually(t, "the claim without a pod is gone", func(ctx context.Context) error {
		_, err := claims.Get(ctx, "probe", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the claim still exists"), err)
	})
}

// writer returns a pod that writes a file to its volume and keeps running.
func (w *workload) writer() *corev1.Pod {
	grace := int64(20)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "writer"},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{
				Name: "writer", Image: w.Image("node"), ImagePullPolicy: corev1.PullIfNotPresent,
				Command:      []string{"/node", "use", "/data/file", text},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
			}}},
		},
	}
}

// awaitFile waits until the pod runs, as its status says, and its file is on the volume. The kubelet of a busy
// machine writes the status seconds after the file.
func (w *workload) awaitFile(t *testing.T) {
	t.Helper()
	w.eventually(t, "the pod in "+w.namespace+" has written its file", func(ctx context.Context) error {
		claim, err := w.Client.CoreV1().PersistentVolumeClaims(w.namespace).Get(ctx, "data", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if w.pv = claim.Spec.VolumeName; w.pv == "" {
			return fmt.Errorf("the claim is %s", claim.Status.Phase)
		}
		volume, err := w.Client.CoreV1().PersistentVolumes().Get(ctx, w.pv, metav1.GetOptions{})
		if err != nil {
			return err
		}
		w.handle = volume.Spec.CSI.VolumeHandle
		pod, err := w.Client.CoreV1().Pods(w.namespace).Get(ctx, "writer", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodRunning {
			return fmt.Errorf("the pod is %s", pod.Status.Phase)
		}
		return w.checkFile()
	})
}

// checkFile returns an error unless the volume has the pod's file.
func (w *workload) checkFile() error {
	content, err := os.ReadFile(w.DriverDir(driver.VolumesDir, w.handle, "file"))
	if err == nil && string(content) != text {
		err = fmt.Errorf("the file has %q", content)
	}
	return err
}

// deletePV, deleteClaim and deletePod delete an object of the workload.
func (w *workload) deletePV(t *testing.T) {
	t.Helper()
	must(t, w.Client.CoreV1().PersistentVolumes().Delete(t.Context(), w.pv, metav1.DeleteOptions{}))
}

func (w *workload) deleteClaim(t *testing.T) {
	t.Helper()
	must(t, w.Client.CoreV1().PersistentVolumeClaims(w.namespace).Delete(t.Context(), "data", metav1.DeleteOptions{}))
}

func (w *workload) deletePod(t *testing.T) {
	t.Helper()
	must(t, w.Client.CoreV1().Pods(w.namespace).Delete(t.Context(), "writer", metav1.DeleteOptions{}))
}

// expectInUse fails the test unless the pod runs with its file, and volume and claim exist.
func (w *workload) expectInUse(t *testing.T) {
	t.Helper()
	pod, err := w.Client.CoreV1().Pods(w.namespace).Get(t.Context(), "writer", metav1.GetOptions{})
	if err != nil || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod is %s, %v, want Running", pod.Status.Phase, err)
	}
	if _, err := w.Client.CoreV1().PersistentVolumes().Get(t.Context(), w.pv, metav1.GetOptions{}); err != nil {
		t.Errorf("the volume is gone: %v", err)
	}
	if _, err := w.Client.CoreV1().PersistentVolumeClaims(w.namespace).
		Get(t.Context(), "data", metav1.GetOptions{}); err != nil {
		t.Errorf("the claim is gone: %v", err)
	}
	if err := w.checkFile(); err != nil {
		t.Errorf("the data is lost: %v", err)
	}
}

// awaitGone waits until pod, claim, volume and data are gone, and checks that the data went
// after the last mount.
func (w *workload) awaitGone(t *testing.T) {
	t.Helper()
	w.eventually(t, "pod, claim, volume and data of "+w.namespace+" are gone", func(ctx context.Context) error {
		_, podErr := w.Client.CoreV1().Pods(w.namespace).Get(ctx, "writer", metav1.GetOptions{})
		_, claimErr := w.Client.CoreV1().PersistentVolumeClaims(w.namespace).Get(ctx, "data", metav1.GetOptions{})
		_, pvErr := w.Client.CoreV1().PersistentVolumes().Get(ctx, w.pv, metav1.GetOptions{})
		_, dataErr := os.Stat(w.DriverDir(driver.VolumesDir, w.handle))
		if apierrors.IsNotFound(podErr) && apierrors.IsNotFound(claimErr) && apierrors.IsNotFound(pvErr) &&
			os.IsNotExist(dataErr) {
			return nil
		}
		return errors.Join(errors.New("something is left"), podErr, claimErr, pvErr, dataErr)
	})
	want := "CreateVolume NodeStageVolume NodePublishVolume NodeUnpublishVolume NodeUnstageVolume DeleteVolume"
	log, err := os.ReadFile(w.DriverDir(driver.CallLog))
	must(t, err)
	if got := strings.Join(order(string(log), w.handle), " "); got != want {
		t.Errorf("the driver was called with %s, want %s", got, want)
	}
}

// order returns the successful calls of a call log for a volume, each method once: DeleteVolume
// at its first call, the others at their last. A new kubelet mounts again what is mounted.
func order(log, volume string) []string {
	var calls []string
	for line := range strings.Lines(log) {
		method, called, _ := strings.Cut(strings.TrimSpace(line), " ")
		i := slices.Index(calls, method)
		if called != volume || i >= 0 && method == "DeleteVolume" {
			continue
		}
		if i >= 0 {
			calls = slices.Delete(calls, i, i+1)
		}
		calls = append(calls, method)
	}
	return calls
}

func TestOrderOfCalls(t *testing.T) {
	for name, tc := range map[string]struct{ log, want string }{
		"one volume":                  {"CreateVolume a\nDeleteVolume a\n", "CreateVolume DeleteVolume"},
		"another volume":              {"CreateVolume b\n", ""},
		"a volume is mounted again":   {"Stage a\nPublish a\nStage a\nPublish a\nUnpublish a\n", "Stage Publish Unpublish"},
		"a volume is mounted for two": {"Publish a\nUnpublish a\nPublish a\nUnpublish a\n", "Publish Unpublish"},
		"deleted before the unmount":  {"DeleteVolume a\nUnpublish a\nDeleteVolume a\n", "DeleteVolume Unpublish"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(order(tc.log, "a"), " "); got != tc.want {
				t.Errorf("order() = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestMain(m *testing.M) {
	if cluster.RunKubectl() {
		return
	}
	slog.SetLogLoggerLevel(slog.LevelWarn) // the chart has symbolic links on purpose
	m.Run()
}

// start runs a cluster with the programs of one side until the test ends.
func start(t *testing.T, side cluster.Side) *cluster.Cluster {
	t.Helper()
	return startBy(t, cluster.Start, side)
}

// startBy runs a cluster until the test ends. Its data and logs are kept if the test fails.
func startBy(t *testing.T, start func(context.Context, cluster.Config) (*cluster.Cluster, error),
	side cluster.Side) *cluster.Cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "node-") // the paths of sockets are short
	must(t, err)
	source, err := filepath.Abs("../../..")
	must(t, err)
	c, err := start(t.Context(), cluster.Config{Source: source, Binaries: os.Getenv("EXEUNT_BIN"), Dir: dir,
		Side: side})
	if err != nil {
		t.Fatalf("%v\ndata and logs are in %s", err, dir)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("data and logs are in %s", dir)
			return
		}
		if err := c.Remove(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until check returns nil.
func (w *workload) eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	must(t, w.Await(t.Context(), what, check))
}
