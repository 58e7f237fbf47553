package nodes

import (
	"flag"
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

// shared is the setup of the cluster that tests share.
var shared = harness.Setup{NoPrograms: true, Machines: 40}

// TestMain lets many tests run at a time, for they wait for graces, Leases and loops.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	m.Run()
}

// cloud is one test's use of a cloud.
type cloud struct{ *harness.CloudMock }

// join returns this number of nodes of the shared cluster.
func join(t *testing.T, nodes int) cloud {
	t.Helper()
	return cloud{harness.JoinCloud(t, shared, nodes, harness.Within(3*harness.Timeout))}
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
      nodeSelector: {e2e: NAMESPACE}
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
