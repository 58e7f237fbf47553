package holder

import (
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// crowd is a cluster with one Deployment and many large pods, in pages.
type crowd struct {
	pods int
	// owner controls the pods.
	owner metav1.OwnerReference
	// rounds is how often the pods were listed.
	rounds atomic.Int32
}

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/pods") {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"},
			Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
		clustertest.Objects{"deployments": {deployment}}.ServeHTTP(w, r)
		return
	}
	first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	if first == 0 {
		c.rounds.Add(1)
	}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	page := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	page.ResourceVersion = "1"
	for i := first; i < min(first+limit, c.pods); i++ {
		page.Items = append(page.Items, c.pod(i))
	}
	if next := first + len(page.Items); next < c.pods {
		page.Continue = strconv.Itoa(next)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(&page)
}

func (c *crowd) pod(number int) corev1.Pod {
	large := strings.Repeat("x", 5<<10)
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("%s-%d", c.owner.Name, number),
		Annotations: map[string]string{"large": large}, OwnerReferences: []metav1.OwnerReference{c.owner}},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "registry.example/job:v1",
			Command: []string{"sh", "-c"}, Args: []string{"run", large}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning}}
}

func machineHeldBy(manager, finalizer string) *unstructured.Unstructured {
	machine := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Machine",
		"metadata": map[string]any{"namespace": "ns", "name": "a", "uid": "1"}}}
	machine.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:finalizers":{"v:\"` + finalizer + `\"":{}}}}`)}})
	return machine
}

func heapInUse() int {
	runtime.GC()
	runtime.GC() // what a pool has had is kept for one
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return int(memory.HeapAlloc)
}

// alive-controller, with 64 MiB, explains objects with finalizers that nobody knows.
func TestUnknownFinalizerKeepsNoPods(t *testing.T) {
	controls := true
	for kind, owner := range map[string]metav1.OwnerReference{
		"of a workload": {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d8f7", Controller: &controls},
		"of a job":      {APIVersion: "batch/v1", Kind: "Job", Name: "batch", Controller: &controls},
	} {
		t.Run(kind, func(t *testing.T) {
			c := &crowd{pods: 3200, owner: owner}
			reader := clustertest.NewReader(t, c.ServeHTTP)
			finder := Finder{Reader: reader}
			before := heapInUse()
			for _, finalizer := range []string{"example.com/a", "example.com/b"} {
				finder.Attribute(t.Context(), machineHeldBy("manager", finalizer), finalizer)
			}
			if kept := heapInUse() - before; kept > 8<<20 {
				t.Errorf("%d MiB are kept of %d pods", kept>>20, c.pods)
			}
			if got := c.rounds.Load(); got != 1 {
				t.Errorf("the pods were listed %d times", got)
			}
			runtime.KeepAlive(reader)
		})
	}
}

// What is kept of a pod is enough to find the program that set the finalizer.
func TestPodWithoutWorkloadIsSuspected(t *testing.T) {
	controls := true
	c := &crowd{pods: 1, owner: metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "batch", Controller: &controls}}
	b := Finder{Reader: clustertest.NewReader(t, c.ServeHTTP)}.Attribute(t.Context(), machineHeldBy("job", "example.com/a"),
		"example.com/a")
	want := "Pod ns/batch-0 fits: it runs an image or command with the name of the program that set the finalizer"
	for _, evidence := range b.Evidence {
		if evidence.Text == want {
			return
		}
	}
	t.Errorf("the evidence is %+v, want %q", slices.Clone(b.Evidence), want)
}

// Of the pods in kube-system, most of which run on each node, those of a controller are kept.
func TestControlPlaneKeepsNoOtherPods(t *testing.T) {
	controls := true
	c := &crowd{pods: 3200, owner: metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "proxy", Controller: &controls}}
	reader := clustertest.NewReader(t, c.ServeHTTP)
	before := heapInUse()
	for _, name := range []string{"kubernetes.io/pv-protection", "foregroundDeletion"} {
		Finder{Reader: reader}.LookAll(t.Context(), families.Named(name)[0].Controllers(), "")
	}
	if kept := heapInUse() - before; kept > 8<<20 {
		t.Errorf("%d MiB are kept of %d pods", kept>>20, c.pods)
	}
	runtime.KeepAlive(reader)
}
