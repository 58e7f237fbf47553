package situations

import (
	"encoding/json"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// bucketFinalizer is that of a participant in the situation's namespace.
const bucketFinalizer = "buckets.situations.example/teardown"

var aliveArgs = []string{"alive/" + alive.Name}

// teardowns are situations of the teardown of a whole cluster.
var teardowns = []situation{
	{
		number: "97", name: "a runner tears the cluster down, and a Service waits for its controller", alone: true,
		build: func(r *place) []string {
			r.deleteService()
			service, err := r.Client.CoreV1().Services(r.Namespace).Get(r.Ctx, "service", metav1.GetOptions{})
			r.Must(err, "read Service")
			r.createCloudController()
			r.tearDown(func(a *alive.Alive) {
				a.Finalizers = []string{alive.Finalizer}
				a.Status.RemainingCount, a.Status.Remaining = 1, []alive.Remaining{{Object: alive.Object{Kind: "Service",
					Namespace: r.Namespace, Name: "service", UID: service.UID}, ExternalID: "192.0.2.7"}}
			})
			return aliveArgs
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ControllerActs},
		printed: []string{"waiting TeardownRuns: Alive.lifecycle.exeunt.io cluster", "the external resource is 192.0.2.7", "\n  deadline: ",
			"by field spec.confirmedAt and spec.timeout", "status.remainingCount is 1"},
		step: func(r *place) {
			r.strip(schema.GroupVersionResource{Version: "v1", Resource: "services"}, r.Namespace, "service")
			r.strip(alive.Resource, "", alive.Name)
		},
	},
	{
		number: "97b", name: "nobody carries a teardown out", alone: true,
		build: func(r *place) []string {
			r.tearDown(func(a *alive.Alive) { a.Finalizers = []string{alive.Finalizer} })
			r.Must(r.Client.CoordinationV1().Leases(teardown.Namespace).Delete(r.Ctx, teardown.LeaseName, metav1.DeleteOptions{}), "delete the Lease")
			return aliveArgs
		},
		verdict: blocker.Unknown, roots: []blocker.Reason{blocker.ControllerUnseen}, next: "# exeunt teardown --confirm=",
		step: func(r *place) { r.strip(alive.Resource, "", alive.Name) },
	},
	{
		number: "98", name: "somebody protects a cluster again whose teardown has started", alone: true,
		build: func(r *place) []string {
			r.tearDown(nil)
			_, err := r.dynamic().Resource(alive.Resource).Patch(r.Ctx, alive.Name, types.MergePatchType,
				[]byte(`{"spec":{"protected":true}}`), metav1.PatchOptions{})
			r.Must(err, "protect")
			return aliveArgs
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.TeardownStopped}, next: "# exeunt teardown --abort",
		evidence: []string{"spec.protected is true"},
		step:     func(r *place) { r.strip(alive.Resource, "", alive.Name) },
	},
	{
		number: "98b", name: "a participant of a teardown is switched off", alone: true,
		build: func(r *place) []string {
			r.createDeployment(r.Namespace, "bucket-operator", "bucket-operator:v1", 0, 0)
			r.tearDown(nil)
			return aliveArgs
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone}, next: "# last resort, buckets of the account dev stays behind",
		evidence: []string{"cleans up buckets of the account dev", "1 workloads want 0 pods"},
		step:     func(r *place) { r.strip(alive.Resource, "", alive.Name) },
	},
	{
		number: "98c", name: "a participant of a teardown reports an error", alone: true,
		build: func(r *place) []string {
			r.tearDown(nil)
			r.createWarning(r.liveAlive(), "BucketFailed", "the bucket is not empty", 0, "bucket-operator")
			return aliveArgs
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerFails}, next: "describe alives.lifecycle.exeunt.io cluster",
		evidence: []string{"BucketFailed of bucket-operator"},
		step:     func(r *place) { r.strip(alive.Resource, "", alive.Name) },
	},
	{
		number: "99", name: "a cluster is protected against its teardown", alone: true,
		build:   func(r *place) []string { r.defineAlive(); r.createAlive(alive.New()); return aliveArgs },
		verdict: blocker.None, roots: []blocker.Reason{blocker.ClusterProtected},
	},
	{
		number: "99b", name: "the freeze of a teardown refuses a claim", alone: true,
		build: func(r *place) []string {
			r.Must(sandbox.ApplyYAML(r.Ctx, r.Plane.RESTConfig(), deploy.Freeze), "freeze")
			r.Until("the freeze is in force", func() bool { return apierrors.IsForbidden(r.tryClaim()) })
			return []string{"pvc/data"}
		},
		verdict: blocker.Gone, roots: []blocker.Reason{blocker.FreezeRefuses}, next: "# exeunt teardown remove",
	},
	{
		number: "99c", name: "the freeze of a teardown refuses the pods of a StatefulSet", alone: true,
		build: func(r *place) []string {
			r.Must(sandbox.ApplyYAML(r.Ctx, r.Plane.RESTConfig(), deploy.Freeze), "freeze")
			var refused error
			r.Until("the freeze is in force", func() bool { refused = r.tryClaim(); return apierrors.IsForbidden(refused) })
			set := r.createSet()
			r.createWarning(set, "FailedCreate", "create Pod set-0 in StatefulSet set failed error: "+refused.Error(), 0, "statefulset-controller")
			return []string{"statefulset/set"}
		},
		verdict: blocker.None, roots: []blocker.Reason{blocker.FreezeRefuses}, next: "# exeunt teardown remove",
		evidence: []string{"FailedCreate, last at "},
	},
	{
		number: "99d", name: "the record of a teardown whose Alive is gone", alone: true,
		build: func(r *place) []string {
			r.tearDown(func(a *alive.Alive) { a.Finalizers = []string{alive.Finalizer} })
			_, err := r.Client.CoreV1().ConfigMaps(teardown.Namespace).Create(r.Ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Name: teardown.ReportName, Annotations: map[string]string{teardown.PhaseAnnotation: "Complete"}},
				Data: map[string]string{teardown.DocumentKey: `{"totals":{"Volume":{"gone":7}}}`}}, metav1.CreateOptions{})
			r.Must(err, "create the record")
			r.strip(alive.Resource, "", alive.Name)
			return aliveArgs
		},
		verdict: blocker.Gone, roots: []blocker.Reason{blocker.TeardownEnded}, evidence: []string{"says Complete", "Volume: 7 gone"},
	},
}

// defineAlive installs the kind Alive, without its guards.
func (r *place) defineAlive() {
	r.T.Helper()
	for _, name := range []string{"alive/namespace.yaml", "alive/crd.yaml"} {
		text, err := deploy.Alive.ReadFile(name)
		r.Must(err, "read manifest")
		r.Must(sandbox.ApplyYAML(r.Ctx, r.Plane.RESTConfig(), text), "apply "+name)
	}
	r.Until("Alive is served", func() bool {
		_, err := r.dynamic().Resource(alive.Resource).List(r.Ctx, metav1.ListOptions{})
		return err == nil
	})
}

func (r *place) createAlive(a *alive.Alive) {
	r.T.Helper()
	content, err := alive.ToUnstructured(a)
	r.Must(err, "encode Alive")
	unstructured.RemoveNestedField(content.Object, "status")
	_, err = r.dynamic().Resource(alive.Resource).Create(r.Ctx, content, metav1.CreateOptions{})
	r.Must(err, "create Alive")
}

// tearDown creates an Alive with one participant, and deletes it. A runner leads.
func (r *place) tearDown(change func(*alive.Alive)) {
	r.T.Helper()
	r.defineAlive()
	system, err := r.Client.CoreV1().Namespaces().Get(r.Ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	r.Must(err, "read namespace kube-system")
	a := alive.New()
	a.Finalizers = append(a.Finalizers, bucketFinalizer)
	a.Annotations = map[string]string{bucketFinalizer: r.Namespace + ": buckets of the account dev"}
	a.Spec = alive.Spec{Protected: ptr.To(false), Confirm: system.UID, ConfirmedAt: ptr.To(metav1.Now())}
	a.Status = alive.Status{Phase: alive.TearingDown, Reason: "Remaining", Message: "what was deleted is awaited",
		Conditions: []metav1.Condition{{Type: alive.ConditionStarted, Status: metav1.ConditionTrue, Reason: "Prepared",
			LastTransitionTime: metav1.Now()}}}
	if change != nil {
		change(a)
	}
	r.createAlive(a)
	body, err := json.Marshal(map[string]any{"status": a.Status})
	r.Must(err, "encode status")
	alives := r.dynamic().Resource(alive.Resource)
	_, err = alives.Patch(r.Ctx, alive.Name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
	r.Must(err, "write status")
	r.Must(alives.Delete(r.Ctx, alive.Name, metav1.DeleteOptions{}), "delete Alive")
	r.createLease(teardown.Namespace, teardown.LeaseName, "laptop_1", 0, 15*time.Minute)
}

func (r *place) liveAlive() *unstructured.Unstructured {
	r.T.Helper()
	content, err := r.dynamic().Resource(alive.Resource).Get(r.Ctx, alive.Name, metav1.GetOptions{})
	r.Must(err, "read Alive")
	return content
}

// createCloudController creates the Lease of a program that deletes load balancers.
func (r *place) createCloudController() {
	r.T.Helper()
	r.createLease(metav1.NamespaceSystem, "cloud-controller-manager", "cloud_1", 0, 15*time.Minute)
}

// tryClaim creates the claim "data" in a dry run.
func (r *place) tryClaim() error {
	r.T.Helper()
	_, err := r.Client.CoreV1().PersistentVolumeClaims(r.Namespace).Create(r.Ctx, &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claimSpec()}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

func claimSpec() v1.PersistentVolumeClaimSpec {
	return v1.PersistentVolumeClaimSpec{AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
		Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")}}}
}

// createSet creates the StatefulSet "set", and returns how events name it.
func (r *place) createSet() *unstructured.Unstructured {
	r.T.Helper()
	labels := map[string]string{"app": "set"}
	set, err := r.Client.AppsV1().StatefulSets(r.Namespace).Create(r.Ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "set"},
		Spec: appsv1.StatefulSetSpec{ServiceName: "set", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}}},
			VolumeClaimTemplates: []v1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: claimSpec()}}},
	}, metav1.CreateOptions{})
	r.Must(err, "create StatefulSet")
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet",
		"metadata": map[string]any{"namespace": set.Namespace, "name": set.Name, "uid": string(set.UID)}}}
}
