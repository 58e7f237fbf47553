package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/nodeterminator/instances"
	"github.com/exeunt-io/exeunt/pkg/termination"
	"github.com/exeunt-io/exeunt/test/node/internal/cluster"
	"github.com/exeunt-io/exeunt/test/node/internal/record"
)

const (
	// leaseSeconds is short, so that a silent kubelet is noticed soon.
	leaseSeconds = 8
	// namespace has the pods.
	namespace = "apps"
)

// terminations is a cluster whose nodes node-terminator ends.
type terminations struct {
	*cluster.Cluster
	machines *machines
}

// startTerminations runs a cluster without a node, and node-terminator, until the test ends.
func startTerminations(t *testing.T) *terminations {
	t.Helper()
	w := &terminations{Cluster: startBy(t, cluster.StartEmpty, cluster.Upstream), machines: &machines{}}
	must(t, w.StartNodeTerminator(t.Context(), w.machines.serve(t, w.Dir())))
	_, err := w.Client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	must(t, err)
	w.eventually(t, "the namespace has a service account", func(ctx context.Context) error {
		_, err := w.Client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	return w
}

func (w *terminations) eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	must(t, w.Await(t.Context(), what, check))
}

// boot starts a machine.
func (w *terminations) boot(t *testing.T, name string) *machine {
	t.Helper()
	id := "test://" + name
	node, err := w.StartNode(t.Context(), cluster.NodeConfig{Name: name, ProviderID: id, LeaseSeconds: leaseSeconds})
	must(t, err)
	m := &machine{Node: node, state: instances.Running, look: func(context.Context) {}}
	w.machines.all.Store(id, m)
	return m
}

// serve has the node served with the period, and waits until its machine was seen.
func (w *terminations) serve(t *testing.T, m *machine, period time.Duration) {
	t.Helper()
	w.label(t, m, termination.Label, period.String())
	w.eventually(t, "the machine of "+m.Name+" was seen", func(ctx context.Context) error {
		node, err := w.Client.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
		if err == nil && (!termination.Protected(node) || node.Annotations[termination.InstanceAnnotation] == "") {
			err = fmt.Errorf("it has the finalizers %v and the annotations %v", node.Finalizers, node.Annotations)
		}
		return err
	})
}

func (w *terminations) label(t *testing.T, m *machine, key, value string) {
	t.Helper()
	_, err := w.Client.CoreV1().Nodes().Patch(t.Context(), m.Name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value), metav1.PatchOptions{})
	must(t, err)
}

// deleteNode deletes the Node object, and returns when that was requested, as the API server counts, and the UID.
func (w *terminations) deleteNode(t *testing.T, m *machine) (time.Time, types.UID) {
	t.Helper()
	must(t, w.Client.CoreV1().Nodes().Delete(t.Context(), m.Name, metav1.DeleteOptions{}))
	node, err := w.Client.CoreV1().Nodes().Get(t.Context(), m.Name, metav1.GetOptions{})
	must(t, err)
	return node.DeletionTimestamp.Time, node.UID
}

// awaitEnd waits until the Node is gone, and returns the report about it.
func (w *terminations) awaitEnd(t *testing.T, m *machine, uid types.UID) (report termination.Report) {
	t.Helper()
	w.eventually(t, "node "+m.Name+" is gone", func(ctx context.Context) error {
		node, err := w.Client.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
		return isGone(node.UID == uid, err)
	})
	w.eventually(t, "the report of node "+m.Name+" says that it ended", func(ctx context.Context) error {
		stored, err := w.Client.CoreV1().ConfigMaps(deploy.Namespace).
			Get(ctx, "node-termination-"+string(uid), metav1.GetOptions{})
		if err != nil {
			return err
		}
		report = termination.Report{}
		if err := json.Unmarshal([]byte(stored.Data[termination.ReportKey]), &report); err != nil {
			return err
		}
		if report.Phase != termination.PhaseEnded {
			return fmt.Errorf("it says %s, %s", report.Phase, report.Reason)
		}
		return nil
	})
	return report
}

// isGone takes the answer to a read of an object, and whether its UID is that of before. It returns an error while the
// object of before exists.
func isGone(same bool, err error) error {
	if apierrors.IsNotFound(err) || err == nil && !same {
		return nil
	}
	return errors.Join(errors.New("it still exists"), err)
}

// recorder returns a pod that records its times on the node, and ends so long after SIGTERM.
func (w *terminations) recorder(m *machine, name string, grace int64, endAfter time.Duration) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}},
		Spec: w.records(m, name, grace, endAfter)}
}

func (w *terminations) records(m *machine, name string, grace int64, endAfter time.Duration) corev1.PodSpec {
	root, create := int64(0), corev1.HostPathDirectoryOrCreate
	return corev1.PodSpec{
		NodeSelector:                  map[string]string{corev1.LabelHostname: m.Name},
		TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{{
			Name: "main", Image: w.Image("node"), ImagePullPolicy: corev1.PullIfNotPresent,
			Command:         []string{"/node", "record", "--end-after=" + endAfter.String(), "/record/" + name},
			SecurityContext: &corev1.SecurityContext{RunAsUser: &root},
			VolumeMounts:    []corev1.VolumeMount{{Name: "record", MountPath: "/record"}},
		}},
		Volumes: []corev1.Volume{{Name: "record", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/record", Type: &create}}}},
	}
}

// run creates a pod, and waits until it is ready and records.
func (w *terminations) run(t *testing.T, m *machine, pod *corev1.Pod) {
	t.Helper()
	_, err := w.Client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	must(t, err)
	w.awaitRecord(t, pod.Name, m.recordOf(pod.Name))
}

// recordOf returns the file of a pod on the machine.
func (m *machine) recordOf(pod string) string { return filepath.Join(m.Dir, "lib", "record", pod) }

// awaitRecord waits until the pod is ready, and has written to the file.
func (w *terminations) awaitRecord(t *testing.T, pod, file string) {
	t.Helper()
	w.eventually(t, "pod "+pod+" is ready", func(ctx context.Context) error {
		now, err := w.Client.CoreV1().Pods(namespace).Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range now.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				_, err := os.Stat(file)
				return err
			}
		}
		return fmt.Errorf("it is %s", now.Status.Phase)
	})
}

// read returns the events in the file.
func read(t *testing.T, file string) record.Events {
	t.Helper()
	events, err := record.Read(file)
	must(t, err)
	return events
}

// within fails the test unless at is between from and to, in seconds after the zero time.
func within(t *testing.T, what string, at, zero time.Time, from, to float64) {
	t.Helper()
	if after := at.Sub(zero).Seconds(); at.IsZero() || after < from || after > to {
		t.Errorf("%s: %s after the request, want %v to %v seconds", what, strconv.FormatFloat(after, 'f', 2, 64), from, to)
	}
}

// errNotReady: a pod is not ready yet.
var errNotReady = errors.New("it is not ready")
