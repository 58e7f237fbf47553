package nodes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// cloud is a cloud with the workloads of a test.
type cloud struct{ *harness.CloudMock }

// startCloud starts a cluster with this number of machines, and returns once pods can be bound to all.
func startCloud(t *testing.T, nodes int, flags ...string) cloud {
	t.Helper()
	s := harness.Own(t, harness.Setup{NoPrograms: true}, harness.Within(3*harness.Timeout))
	c := cloud{s.StartCloud(nodes, flags...)}
	c.AwaitReadyNodes(nodes)
	return c
}

// podTemplate is the template of a pod with these annotations, each a line of YAML.
func podTemplate(app string, annotations ...string) string {
	return fmt.Sprintf(`
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata:
      labels: {app: %[1]s}
      annotations: {%[2]s}
    spec:
      terminationGracePeriodSeconds: 30
      containers:
      - name: main
        image: image`, app, strings.Join(annotations, ", "))
}

// apply applies a manifest in the namespace of the test.
func (c cloud) apply(manifest string) {
	c.T.Helper()
	text := strings.ReplaceAll(manifest, "NAMESPACE", c.Namespace)
	c.Must(sandbox.ApplyYAML(c.Ctx, c.Plane.RESTConfig(), []byte(text)), "apply manifest")
}

// deployment creates a Deployment.
func (c cloud) deployment(app string, replicas int, annotations ...string) {
	c.T.Helper()
	c.apply(fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %s, namespace: NAMESPACE}
spec:
  replicas: %d`, app, replicas) + podTemplate(app, annotations...))
}

// statefulSet creates a StatefulSet with one disk for each pod.
func (c cloud) statefulSet(app string, replicas int, annotations ...string) {
	c.T.Helper()
	c.apply(fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: %s, namespace: NAMESPACE}
spec:
  serviceName: %[1]s
  replicas: %d`, app, replicas) + podTemplate(app, annotations...) + `
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      storageClassName: NAMESPACE
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 1Mi}}
`)
}

// awaitReady waits until this number of pods of the app are ready, and returns them.
func (c cloud) awaitReady(app string, count int) []v1.Pod {
	c.T.Helper()
	var ready []v1.Pod
	c.Until(fmt.Sprintf("%d pods of %s are ready", count, app), func() bool {
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(c.Ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		c.Must(err, "list pods")
		ready = slices.DeleteFunc(pods.Items, func(p v1.Pod) bool { return p.DeletionTimestamp != nil || !isReady(p) })
		return len(ready) == count
	})
	return ready
}

func isReady(p v1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
	})
}

// deleteWithGrace deletes a pod with a grace period in seconds.
func (c cloud) deleteWithGrace(name string, seconds int64) {
	c.T.Helper()
	c.Must(c.Client.CoreV1().Pods(c.Namespace).Delete(c.Ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &seconds}),
		"delete pod")
}

// scale sets the number of pods of a StatefulSet.
func (c cloud) scale(app string, replicas int) {
	c.T.Helper()
	body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := c.Client.AppsV1().StatefulSets(c.Namespace).Patch(c.Ctx, app, types.MergePatchType, body,
		metav1.PatchOptions{})
	c.Must(err, "scale StatefulSet")
}

// lease returns when the Lease of the node was last renewed.
func (c cloud) lease(node string) time.Time {
	c.T.Helper()
	lease, err := c.Client.CoordinationV1().Leases(v1.NamespaceNodeLease).Get(c.Ctx, node, metav1.GetOptions{})
	c.Must(err, "read Lease")
	return lease.Spec.RenewTime.Time
}

// isReady reports whether the node is ready.
func (c cloud) isReady(node string) bool {
	c.T.Helper()
	object, err := c.Client.CoreV1().Nodes().Get(c.Ctx, node, metav1.GetOptions{})
	c.Must(err, "read node")
	return slices.ContainsFunc(object.Status.Conditions, func(c v1.NodeCondition) bool {
		return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue
	})
}
