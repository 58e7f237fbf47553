package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// annStaticPods of a Node names the static pods of the machine, separated by commas. Each has a mirror pod in
// kube-system, which is created again whenever it is deleted while the machine runs.
const annStaticPods = "cloudmock.exeunt.io/static-pods"

func isMirror(object *v1.Pod) bool { return object.Annotations[v1.MirrorPodAnnotationKey] != "" }

// keepMirrors keeps the mirror pods.
func (m *machine) keepMirrors(ctx context.Context) {
	next := time.Now()
	for {
		var missing, deleted []string
		if !m.until(ctx, func(now time.Time) (bool, time.Time) {
			missing, deleted = m.compareMirrors()
			return m.connected() && len(missing)+len(deleted) > 0 && !now.Before(next), next
		}) {
			return
		}
		for _, name := range missing {
			m.try(ctx, name, m.createMirror)
		}
		for _, name := range deleted {
			m.try(ctx, name, m.deleteMirror)
		}
		next = time.Now().Add(longestRetry / 5) // the watch shows the result meanwhile
	}
}

// try sends a request about a mirror pod, which is sent again if it fails.
func (m *machine) try(ctx context.Context, name string, send func(context.Context, string) error) {
	if err := send(ctx, name); err != nil && ctx.Err() == nil {
		m.cloud.warn(fmt.Errorf("mirror pod %s: %w", name, err))
	}
}

// compareMirrors returns the mirror pods that do not exist, and those that are Terminating. The caller holds the lock.
func (m *machine) compareMirrors() (missing, deleted []string) {
	node := m.cloud.node(m.name)
	if node == nil || node.UID != m.nodeUID || node.Annotations[annStaticPods] == "" {
		return nil, nil
	}
	existing := map[string]*v1.Pod{}
	for _, object := range m.cloud.podsOf(m.name) {
		existing[object.Name] = object
	}
	for name := range strings.SplitSeq(node.Annotations[annStaticPods], ",") {
		name += "-" + m.name
		switch object := existing[name]; {
		case object == nil:
			missing = append(missing, name)
		case object.DeletionTimestamp != nil:
			deleted = append(deleted, name)
		}
	}
	return missing, deleted
}

// createMirror creates a mirror pod that runs.
func (m *machine) createMirror(ctx context.Context, name string) error {
	pods := m.cloud.client.CoreV1().Pods(metav1.NamespaceSystem)
	controls := true
	owner := m.owned(m.nodeUID)
	owner[0].Controller = &controls
	created, err := pods.Create(ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, OwnerReferences: owner,
			Annotations: map[string]string{v1.MirrorPodAnnotationKey: "mock", "kubernetes.io/config.source": "file"},
		},
		Spec: v1.PodSpec{
			NodeName: m.name, PriorityClassName: "system-node-critical",
			Containers:  []v1.Container{{Name: "main", Image: "static"}},
			Tolerations: []v1.Toleration{{Operator: v1.TolerationOpExists}},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	p := &pod{machine: m, uid: created.UID, started: time.Now()}
	running := v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(p.started)}}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.uid}, "status": v1.PodStatus{
		Phase: v1.PodRunning, Conditions: conditions(p.started, true, ""),
		ContainerStatuses: p.containers(created, true, running),
	}})
	if err != nil {
		return err
	}
	_, err = pods.Patch(ctx, name, types.StrategicMergePatchType, body, metav1.PatchOptions{}, "status")
	return err
}

// deleteMirror removes a mirror pod that is Terminating: its containers are not those of the API, and run on.
func (m *machine) deleteMirror(ctx context.Context, name string) error {
	err := m.cloud.client.CoreV1().Pods(metav1.NamespaceSystem).Delete(ctx, name,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
