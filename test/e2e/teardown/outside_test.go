package teardown

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/exeunt-io/exeunt/pkg/alive"
	core "github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// changeService changes a Service by a merge patch, or its status.
func changeService(s *harness.Session, name, body string, subresource ...string) {
	s.T.Helper()
	_, err := s.Client.CoreV1().Services(s.Namespace).Patch(s.Ctx, name, types.MergePatchType, []byte(body),
		metav1.PatchOptions{}, subresource...)
	s.Must(err, "change Service")
}

// expectService checks whether a Service exists.
func (r *rig) expectService(name string, wanted bool) {
	r.T.Helper()
	_, err := r.Client.CoreV1().Services(r.Namespace).Get(r.Ctx, name, metav1.GetOptions{})
	if exists := err == nil; exists != wanted || err != nil && !apierrors.IsNotFound(err) {
		r.T.Errorf("Service %s exists: %t (%v), want %t", name, exists, err, wanted)
	}
}

// Rows 31 and 32, and an Ingress without finalizer.
func TestEachServiceGoesOrStaysByItsRow(t *testing.T) {
	r := newRig(t, stock)
	r.createOther("bare")
	r.createOther("addressed")
	changeService(r.Session, "addressed", `{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.7"}]}}}`, "status")
	createService(r.Session, "changed")
	createService(r.Session, "labeled")
	changed := awaitService(r.Session, "changed", "has an address", hasAddress)
	labeled := awaitService(r.Session, "labeled", "has an address", hasAddress)
	changeService(r.Session, "labeled", `{"metadata":{"labels":{"`+alive.PreserveLabel+`":""}}}`)
	r.Must(r.Balancers.SetFaults("[{method: EnsureLoadBalancerDeleted, service: "+r.Namespace+"/changed, error: in use}]"),
		"set faults")
	changeService(r.Session, "changed", `{"spec":{"type":"ClusterIP"}}`)
	r.AwaitEvent(changed, "SyncLoadBalancerFailed")
	r.createIngress("plain")

	lifted := false
	r.mustComplete(func(c *runner.Config) {
		c.Follow = func(p runner.Progress) {
			if p.Reason == core.Remaining && !lifted {
				lifted = true
				r.Must(r.Balancers.SetFaults(""), "set faults")
			}
		}
	})
	if !lifted {
		t.Error("the load balancer of the Service whose type changed was not awaited")
	}
	r.expectService("bare", false)
	r.expectService("addressed", false)
	r.expectService("changed", true)
	r.expectService("labeled", true)
	if _, exists := balancerOf(r.Session, changed); exists {
		t.Error("the load balancer of the Service whose type changed is left")
	}
	if _, exists := balancerOf(r.Session, labeled); !exists {
		t.Error("the load balancer to preserve is gone")
	}
	_, err := r.Client.NetworkingV1().Ingresses(r.Namespace).Get(r.Ctx, "plain", metav1.GetOptions{})
	r.Must(err, "read the Ingress without finalizer")
}

// createOther creates a Service of a load balancer class that nobody serves.
func (r *rig) createOther(name string) {
	r.T.Helper()
	_, err := r.Client.CoreV1().Services(r.Namespace).Create(r.Ctx, &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.ServiceSpec{Type: v1.ServiceTypeLoadBalancer, LoadBalancerClass: new("example.com/other"),
			Ports: []v1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{})
	r.Must(err, "create Service")
}

func (r *rig) createIngress(name string) {
	r.T.Helper()
	_, err := r.Client.NetworkingV1().Ingresses(r.Namespace).Create(r.Ctx, &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressSpec{DefaultBackend: &networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}},
	}, metav1.CreateOptions{})
	r.Must(err, "create Ingress")
}

// Row 34.
func TestSnapshotsGoOrStayWithTheCluster(t *testing.T) {
	r := newRig(t, stock)
	client := snapshotClient(r.Session)
	source := r.addDynamic("data", harness.DeleteClass)
	takeSnapshot(r.Session, client, "goes", "data", "delete")
	stays := []string{takeSnapshot(r.Session, client, "stays", "data", "retain"),
		takeSnapshot(r.Session, client, "labeled", "data", "delete")}
	_, err := client.SnapshotV1().VolumeSnapshots(r.Namespace).Patch(r.Ctx, "labeled", types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"`+alive.PreserveLabel+`":""}}}`), metav1.PatchOptions{})
	r.Must(err, "label a snapshot")
	r.mustComplete()
	left := storedSnapshots(r.Session)
	slices.Sort(left)
	slices.Sort(stays)
	if !slices.Equal(left, stays) {
		t.Errorf("the storage system has snapshots %q, want %q", left, stays)
	}
	r.expectDisks(source)
}

// createSet creates a StatefulSet whose pods run on a living node, with a claim each.
func (r *rig) createSet(name string, replicas int32) *appsv1.StatefulSet {
	r.T.Helper()
	labels := map[string]string{"app": name}
	set, err := r.Client.AppsV1().StatefulSets(r.Namespace).Create(r.Ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.StatefulSetSpec{Replicas: &replicas, ServiceName: name,
			PodManagementPolicy: appsv1.ParallelPodManagement, Selector: &metav1.LabelSelector{MatchLabels: labels},
			VolumeClaimTemplates: []v1.PersistentVolumeClaim{*r.NewClaim("data", harness.DeleteClass)},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{NodeName: "node",
				TerminationGracePeriodSeconds: new(int64(1)), Containers: []v1.Container{{Name: "main", Image: "image",
					VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/data"}}}}}}}}, metav1.CreateOptions{})
	r.Must(err, "create StatefulSet")
	return set
}

// diskOf waits until the claim is bound.
func (r *rig) diskOf(claim string) disk {
	r.T.Helper()
	volume := r.AwaitBound(claim)
	return disk{name: claim, handle: harness.Handle(volume), volume: volume.Name}
}

// Row 24: the pods of a StatefulSet under a budget without room end, and its owner brings none back.
func TestOwnersAndBudgetsDoNotKeepPods(t *testing.T) {
	r := newRig(t, stock)
	set := r.createSet("db", 3)
	_, err := r.Client.PolicyV1().PodDisruptionBudgets(r.Namespace).Create(r.Ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(0)), Selector: set.Spec.Selector}}, metav1.CreateOptions{})
	r.Must(err, "create PodDisruptionBudget")
	disks := []disk{r.diskOf("data-db-0"), r.diskOf("data-db-1"), r.diskOf("data-db-2")}
	r.mustComplete()
	r.expectDisks(disks...)
	r.expectNothingStored()
	pods, err := r.Client.CoreV1().Pods(r.Namespace).List(r.Ctx, metav1.ListOptions{})
	r.Must(err, "list pods")
	if len(pods.Items) != 0 {
		t.Errorf("%d pods are left", len(pods.Items))
	}
	_, err = r.Client.AppsV1().StatefulSets(r.Namespace).Get(r.Ctx, "db", metav1.GetOptions{})
	r.Must(err, "read the StatefulSet, which nothing deletes")
}

// Row 25: the namespace of a participant goes after the participant is done. Until then its pods run.
func TestPodOfParticipantIsCreatedAgain(t *testing.T) {
	r := newRig(t, stock)
	r.register()
	theirs := r.in(metav1.NamespaceDefault)
	theirs.createSet("store", 1)
	store, ordinary := theirs.diskOf("data-store-0"), r.addDynamic("data", harness.DeleteClass)
	pods, name := r.Client.CoreV1().Pods(theirs.Namespace), harness.ObjectName{Resource: "pods", Namespace: theirs.Namespace, Name: "store-0"}
	first := harness.Await(r.Session, &v1.Pod{}, name, "exists", func(_ *v1.Pod, exists bool) bool { return exists })
	outcome, err := r.during(core.TearingDown, func() {
		r.Must(pods.Delete(r.Ctx, name.Name, metav1.DeleteOptions{}), "delete the pod")
		harness.Await(r.Session, &v1.Pod{}, name, "is created again", func(p *v1.Pod, exists bool) bool {
			return exists && p.UID != first.UID
		})
		if !r.isFrozen() || !r.IsStored(store.handle) {
			t.Errorf("frozen: %t; the participant's disk is stored: %t", r.isFrozen(), r.IsStored(store.handle))
		}
		clients, err := runner.Connect(r.Plane.RESTConfig(), nil)
		r.Must(err, "connect")
		r.Must(alive.Done(r.Ctx, clients.Dynamic, participant), "finish the participant")
	})
	if err != nil || outcome.Phase != core.Complete {
		t.Fatalf("the teardown ended with %+v, %v", outcome, err)
	}
	r.expectDisks(store, ordinary)
}
