package scenarios

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/node/internal/driver"
	"github.com/exeunt-io/exeunt/test/node/internal/record"
)

// disk is the only disk, which can be attached to the nodes of the pool.
const (
	disk = "disk"
	pool = "pool"
)

// disks returns a path in the data directory of the driver, which all machines share.
func (w *terminations) disks(names ...string) string {
	return filepath.Join(append([]string{w.Dir(), "disks"}, names...)...)
}

// deadKubelet deletes a node whose kubelet was killed, while a pod of a StatefulSet writes to its disk. The pod runs on
// the second node once the machine of the first is off, and not before.
func deadKubelet(t *testing.T, w *terminations) {
	const period = 30 * time.Second
	first, second := w.boot(t, "first"), w.boot(t, "second")
	w.startAttacher(t)
	w.createDisk(t)
	w.runDriver(t)
	w.label(t, first, pool, "yes")
	w.runDatabase(t)
	file := func(m *machine) string { return w.disks(driver.VolumesDir, disk, m.Name) }
	w.awaitRecord(t, "db-0", file(first))
	w.label(t, second, pool, "yes")
	w.serve(t, first, period)
	before, err := w.Client.CoreV1().Pods(namespace).Get(t.Context(), "db-0", metav1.GetOptions{})
	must(t, err)
	first.look = func(ctx context.Context) { w.expectHeld(ctx, t, first, before.UID) }

	must(t, first.KillKubelet())
	requested, uid := w.deleteNode(t, first)
	report := w.awaitEnd(t, first, uid)
	w.awaitRecord(t, "db-0", file(second))

	called, off := first.times()
	within(t, "Stop", called, requested, period.Seconds()-early, period.Seconds()+2)
	old, now := read(t, file(first)), read(t, file(second))
	if last := old.Last(); last.Before(called.Add(-time.Second)) || last.After(off) {
		t.Errorf("the last write of the first node was at %v, Stop was called at %v, off at %v", last, called, off)
	}
	if at := now.First(record.Written); !at.After(off) || !at.After(old.Last()) {
		t.Errorf("the second node wrote at %v, the first at %v", at, old.Last())
	}
	if old.Count(record.Signaled) != 0 || report.Counts.Removed != 1 {
		t.Errorf("the pod got SIGTERM %d times; the report counts %+v", old.Count(record.Signaled), report.Counts)
	}
}

// expectHeld fails the test unless the pod exists, no taint says that the machine is off, and the disk is attached.
func (w *terminations) expectHeld(ctx context.Context, t *testing.T, m *machine, uid types.UID) {
	t.Helper()
	if pod, err := w.Client.CoreV1().Pods(namespace).Get(ctx, "db-0", metav1.GetOptions{}); err != nil || pod.UID != uid {
		t.Errorf("the pod was removed while its machine ran: %v", err)
	}
	node, err := w.Client.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		t.Errorf("the Node was released while its machine ran: %v", err)
		return
	}
	if ours, others := termination.OutOfService(node); ours || others {
		t.Error("the node is out of service while its machine runs")
	}
	attachments, err := w.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil || len(attachments.Items) != 1 || attachments.Items[0].DeletionTimestamp != nil {
		t.Errorf("the disk is being detached while the machine runs: %v", err)
	}
}

// createDisk creates the disk, its volume, and the driver that must attach it.
func (w *terminations) createDisk(t *testing.T) {
	t.Helper()
	path, required := w.disks(driver.VolumesDir, disk), true
	must(t, os.MkdirAll(path, 0o755))
	must(t, os.Chmod(path, 0o777)) // #nosec G302 -- pods have any user
	_, err := w.Client.StorageV1().CSIDrivers().Create(t.Context(), &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: driver.Name}, Spec: storagev1.CSIDriverSpec{AttachRequired: &required},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = w.Client.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: disk},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:    size(),
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: driver.Name, VolumeHandle: disk}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
}

func size() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}
}

// runDriver runs the driver on all nodes of the pool.
func (w *terminations) runDriver(t *testing.T) {
	t.Helper()
	const kubelet, plugin = "/var/lib/kubelet", "/var/lib/kubelet/plugins/" + driver.Name
	labels := map[string]string{"app": "driver"}
	privileged, root, propagation := true, int64(0), corev1.MountPropagationBidirectional
	create := corev1.HostPathDirectoryOrCreate
	host := func(name, path string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &create}}}
	}
	_, err := w.Client.AppsV1().DaemonSets(namespace).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "driver"},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{pool: "yes"},
				Containers: []corev1.Container{{
					Name: "driver", Image: w.Image("node"), ImagePullPolicy: corev1.PullIfNotPresent,
					Command: []string{"/node", "driver", "--node=$(NODE_NAME)", "--dir=" + w.disks(),
						"--socket=" + plugin + "/csi.sock", "--registration=" + kubelet + "/plugins_registry"},
					Env:             []corev1.EnvVar{nodeName()},
					SecurityContext: &corev1.SecurityContext{Privileged: &privileged, RunAsUser: &root},
					VolumeMounts: []corev1.VolumeMount{{Name: "kubelet", MountPath: kubelet, MountPropagation: &propagation},
						{Name: "plugin", MountPath: plugin}, {Name: "disks", MountPath: w.disks()}},
				}},
				Volumes: []corev1.Volume{host("kubelet", kubelet), host("plugin", plugin), host("disks", w.disks())},
			}}},
	}, metav1.CreateOptions{})
	must(t, err)
}

// nodeName returns the environment variable with the name of the node.
func nodeName() corev1.EnvVar {
	return corev1.EnvVar{Name: "NODE_NAME",
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}}
}

// runDatabase runs a StatefulSet whose pod records its times on the disk, in a file with the name of its node.
func (w *terminations) runDatabase(t *testing.T) {
	t.Helper()
	labels := map[string]string{"app": "db"}
	none, grace, root := "", int64(5), int64(0)
	_, err := w.Client.AppsV1().StatefulSets(namespace).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				NodeSelector: map[string]string{pool: "yes"}, TerminationGracePeriodSeconds: &grace,
				Containers: []corev1.Container{{
					Name: "main", Image: w.Image("node"), ImagePullPolicy: corev1.PullIfNotPresent,
					Command: []string{"/node", "record", "/data/$(NODE_NAME)"}, Env: []corev1.EnvVar{nodeName()},
					SecurityContext: &corev1.SecurityContext{RunAsUser: &root},
					VolumeMounts:    []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				}},
			}},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &none, VolumeName: disk,
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources:   corev1.VolumeResourceRequirements{Requests: size()}}}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
}
