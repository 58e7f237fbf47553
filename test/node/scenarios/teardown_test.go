package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/test/node/internal/cluster"
	"github.com/exeunt-io/exeunt/test/node/internal/driver"
	"github.com/exeunt-io/exeunt/test/node/internal/record"
)

// needed is how long the pods of a teardown write after SIGTERM.
const needed = 3 * time.Second

// tearDown tears the cluster down while two pods write. Both end by themselves. The kept volume is unmounted with the
// last write on it, the other one is deleted after its unmount.
func tearDown(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	w := &workload{Cluster: c, namespace: "torn-down"}
	_, err := c.Client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, metav1.CreateOptions{})
	must(t, err)
	kept := w.record(t, "kept", "/data/record")
	gone := w.record(t, "gone", "/record/gone") // not on its volume: that is deleted
	onNode := filepath.Join(c.NodeDir(), "lib", "record", "gone")
	w.awaitWrite(t, w.onVolume(kept))
	w.awaitWrite(t, onNode)

	report := w.teardown(t, "--preserve=pvc/"+w.namespace+"/kept")
	fates := map[string]teardown.Fate{}
	for _, item := range report.Items {
		fates[item.ExternalID] = item.Fate
	}
	if len(fates) != 2 || fates[kept] != teardown.Kept || fates[gone] != teardown.Gone {
		t.Errorf("the report says %v", fates)
	}
	const mounts = "CreateVolume NodeStageVolume NodePublishVolume NodeUnpublishVolume NodeUnstageVolume"
	w.awaitCalls(t, kept, mounts)
	w.awaitCalls(t, gone, mounts+" DeleteVolume")
	for _, file := range []string{w.onVolume(kept), onNode} {
		events := read(t, file)
		signaled, ended := events.First(record.Signaled), events.First(record.Ended)
		if signaled.IsZero() || ended.Sub(signaled) < needed || !events.Last().Equal(ended) {
			t.Errorf("%s: SIGTERM at %v, its own end at %v, the last write at %v", file, signaled, ended, events.Last())
		}
	}
	if _, err := os.Stat(w.DriverDir(driver.VolumesDir, gone)); !os.IsNotExist(err) {
		t.Errorf("the volume that was to go is there: %v", err)
	}
}

// record creates a claim and a pod that records its times in a file, and returns the handle of its volume.
func (w *workload) record(t *testing.T, name, file string) (handle string) {
	t.Helper()
	w.createClaim(t, name)
	pod, create := w.writer(), corev1.HostPathDirectoryOrCreate
	pod.Name, pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = name, name
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "record", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/record", Type: &create}}})
	main, root := &pod.Spec.Containers[0], int64(0)
	main.Command = []string{"/node", "record", "--end-after=" + needed.String(), file}
	main.SecurityContext = &corev1.SecurityContext{RunAsUser: &root}
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "record", MountPath: "/record"})
	w.eventually(t, "the pod is created", func(ctx context.Context) error { // its service account comes later
		_, err := w.Client.CoreV1().Pods(w.namespace).Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
	w.eventually(t, "claim "+name+" is bound", func(ctx context.Context) error {
		claim, err := w.Client.CoreV1().PersistentVolumeClaims(w.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("the claim is %s", claim.Status.Phase)
		}
		volume, err := w.Client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if err == nil {
			handle = volume.Spec.CSI.VolumeHandle
		}
		return err
	})
	return handle
}

// onVolume returns the file that the pod of a volume writes.
func (w *workload) onVolume(handle string) string {
	return w.DriverDir(driver.VolumesDir, handle, "record")
}

func (w *workload) awaitWrite(t *testing.T, file string) {
	t.Helper()
	w.eventually(t, file+" is written", func(context.Context) error {
		_, err := os.Stat(file)
		return err
	})
}

// awaitCalls waits until the driver was called in this order for the volume: kubelet unstages a volume after its pod
// has gone.
func (w *workload) awaitCalls(t *testing.T, handle, want string) {
	t.Helper()
	w.eventually(t, "the driver was called with "+want, func(context.Context) error {
		log, err := os.ReadFile(w.DriverDir(driver.CallLog))
		if got := strings.Join(order(string(log), handle), " "); err == nil && got != want {
			err = fmt.Errorf("it was called with %s", got)
		}
		return err
	})
}

// teardown runs the command until all that was to be deleted is gone, and returns its report.
func (w *workload) teardown(t *testing.T, flags ...string) (report teardown.Document) {
	t.Helper()
	system, err := w.Client.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	must(t, err)
	command := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("EXEUNT_BIN"), "exeunt"), append([]string{"teardown",
		"--kubeconfig=" + w.Kubeconfig, "--confirm=" + string(system.UID), "--timeout=10m", "-o=json"}, flags...)...)
	var progress strings.Builder
	command.Stderr = &progress
	out, err := command.Output()
	if err != nil {
		t.Fatalf("teardown: %v\n%s\n%s", err, progress.String(), out)
	}
	must(t, json.Unmarshal(out, &report))
	return report
}
