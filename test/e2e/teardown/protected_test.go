package teardown

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// fill creates volumes, a pod that uses one, and a Service with a load balancer.
func (c *controlled) fill(volumes int) {
	c.T.Helper()
	for i := range volumes {
		c.CreateClaim(fmt.Sprintf("data-%d", i), harness.DeleteClass)
	}
	createService(c.Session, "web")
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "user"}, Spec: v1.PodSpec{
		Containers: []v1.Container{{Name: "main", Image: "image"}},
		Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data-0"}}}}}}
	_, err := c.Client.CoreV1().Pods(c.Namespace).Create(c.Ctx, pod, metav1.CreateOptions{})
	c.Must(err, "create pod")
	for i := range volumes {
		c.AwaitBound(fmt.Sprintf("data-%d", i))
	}
	awaitService(c.Session, "web", "has an address", hasAddress)
}

// versions returns the versions of the volumes, and of claims, pods and Services of the test.
func (c *controlled) versions() map[string]string {
	c.T.Helper()
	core, found := c.Client.CoreV1(), map[string]string{}
	take := func(list runtime.Object, err error) {
		c.Must(err, "list")
		c.Must(meta.EachListItem(list, func(object runtime.Object) error {
			one, err := meta.Accessor(object)
			found[fmt.Sprintf("%T %s/%s", object, one.GetNamespace(), one.GetName())] = one.GetResourceVersion()
			return err
		}), "read list")
	}
	volumes, err := core.PersistentVolumes().List(c.Ctx, metav1.ListOptions{})
	take(volumes, err)
	claims, err := core.PersistentVolumeClaims(c.Namespace).List(c.Ctx, metav1.ListOptions{})
	take(claims, err)
	pods, err := core.Pods(c.Namespace).List(c.Ctx, metav1.ListOptions{})
	take(pods, err)
	services, err := core.Services(c.Namespace).List(c.Ctx, metav1.ListOptions{})
	take(services, err)
	return found
}

// expectUntouched checks that nothing has changed since, and that no disk was deleted.
func (c *controlled) expectUntouched(after string, before map[string]string) {
	c.T.Helper()
	now := c.versions()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now[name] != before[name] {
			c.T.Errorf("after %s, %s has version %q, before %q", after, name, now[name], before[name])
		}
	}
	if count := c.CountDriverCalls(c.Driver, "DeleteVolume"); count != 0 {
		c.T.Errorf("after %s, DeleteVolume was called %d times", after, count)
	}
}

// requests counts the requests of alive-controller, which has stopped, as "verb resource/name".
func (c *controlled) requests(since int) map[string]int {
	c.T.Helper()
	counts := map[string]int{}
	for _, event := range c.audited()[since:] {
		if event.User == sandbox.AliveControllerAccount.Name() && event.Resource != "" {
			counts[fmt.Sprintf("%s %s/%s", event.Verb, event.Resource, event.Name)]++
		}
	}
	return counts
}

func (c *controlled) audited() []sandbox.Event {
	c.T.Helper()
	events, err := sandbox.ReadAudit(c.Plane.AuditLog)
	c.Must(err, "read audit log")
	return events
}

func (c *controlled) dynamic(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	c.T.Helper()
	client, err := dynamic.NewForConfig(c.Plane.RESTConfig())
	c.Must(err, "make client")
	return client.Resource(resource)
}

// attack deletes what row 50 and row 54 name, which is refused.
func (c *controlled) attack() {
	c.T.Helper()
	crds, force := c.dynamic(definitions), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	for name, err := range map[string]error{
		"delete":            c.alives.Delete(c.Ctx, alive.Name, metav1.DeleteOptions{}),
		"delete --force":    c.alives.Delete(c.Ctx, alive.Name, force),
		"deletecollection":  c.alives.DeleteCollection(c.Ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		"delete of the CRD": crds.Delete(c.Ctx, alive.CRD, metav1.DeleteOptions{}),
		"deletecollection of CRDs": crds.DeleteCollection(c.Ctx, metav1.DeleteOptions{},
			metav1.ListOptions{LabelSelector: deploy.PartOf + "=" + deploy.Project}),
	} {
		if !apierrors.IsForbidden(err) {
			c.T.Errorf("%s is answered with %v", name, err)
		}
	}
}

// uninstall removes what "helm uninstall" does not keep, and the namespace.
func (c *controlled) uninstall() {
	c.T.Helper()
	rbac, none := c.Client.RbacV1(), metav1.DeleteOptions{}
	c.Must(rbac.ClusterRoleBindings().Delete(c.Ctx, "exeunt-alive", none), "delete binding")
	c.Must(rbac.ClusterRoles().Delete(c.Ctx, "exeunt-alive", none), "delete role")
	c.Must(rbac.ClusterRoles().Delete(c.Ctx, "exeunt-teardown", none), "delete role")
	c.Must(c.Client.CoreV1().ServiceAccounts(deploy.Namespace).Delete(c.Ctx, deploy.AliveController, none), "delete account")
	c.Must(c.Client.CoreV1().Namespaces().Delete(c.Ctx, deploy.Namespace, none), "delete namespace")
	c.Until("the namespace is gone", func() bool {
		_, err := c.Client.CoreV1().Namespaces().Get(c.Ctx, deploy.Namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestProtectedClusterIsWatchedOnly(t *testing.T) {
	// Restarts: the rights of our provisioner go with the namespace, so that its requests are refused in the end.
	for pair, setup := range map[string]harness.Setup{"stock": stock, "ours": {Teardown: true, Restarts: true}} {
		t.Run(pair, func(t *testing.T) { watchesOnly(t, setup) })
	}
}

func watchesOnly(t *testing.T, setup harness.Setup) {
	c := newControlled(t, setup, deploy.AliveRights) // the kind comes later
	c.fill(100)
	c.apply(deploy.Alive)
	c.await("is created, and protected", phaseIs(alive.Protected, alive.ReasonProtected))
	c.stopController()
	since, version := len(c.audited()), c.get().ResourceVersion
	port := harness.FreePort(t)
	c.begin(fmt.Sprintf("--secure-port=%d", port), "--bind-address=127.0.0.1", "--authentication-skip-lookup",
		"--authorization-always-allow-paths=/metrics")
	c.AwaitLog(c.process, "Watching Alive")
	c.expectAlerts(t, port)
	before := c.versions()
	c.attack()
	c.uninstall()
	if one := c.get(); one == nil || one.ResourceVersion != version {
		t.Errorf("Alive has changed: %+v", one)
	}
	c.awaitSmall()
	c.stopController()
	want := map[string]int{"get namespaces/kube-system": 1, "watch alives/cluster": 1}
	if got := c.requests(since); !maps.Equal(got, want) {
		t.Errorf("while the cluster is protected the program sends %v, want %v", got, want)
	}
	c.expectUntouched("rows 50 and 54, helm uninstall and the deletion of the namespace", before)
	c.testForcedDeletion(before)
}

// expectAlerts checks that the program serves the metrics of its alerts.
func (c *controlled) expectAlerts(t *testing.T, port int) {
	t.Helper()
	served, checked := c.ControllerMetrics(port), 0
	for _, query := range harness.MonitoringQueries(t) {
		if query.OfAliveController() {
			query.ExpectServed(t, served)
			checked++
		}
	}
	if checked == 0 {
		t.Error("no alert is about alive-controller")
	}
}

// awaitSmall waits until the program uses no more than it may while the cluster is protected: 40 MB, without the pages of
// its file, which are not in the working set of a container.
func (c *controlled) awaitSmall() {
	c.T.Helper()
	c.Until("alive-controller uses at most 40 MB", func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.process.PID()))
		c.Must(err, "read status of the process")
		memory, err := measure.ParseAnonymousMemory(status)
		c.Must(err, "read memory of the process")
		c.T.Logf("alive-controller uses %d kB", memory>>10)
		return memory <= 40_000_000
	})
}

// testForcedDeletion deletes the CRD after its guards, while the program is armed, and carries out the way back.
func (c *controlled) testForcedDeletion(before map[string]string) {
	c.T.Helper()
	c.apply(deploy.Alive)
	c.apply(deploy.AliveRights)
	c.apply(deploy.AliveArmed)
	c.begin()
	for _, name := range []string{"exeunt-alive", "exeunt-alive-definition"} {
		c.Must(c.Client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(c.Ctx, name,
			metav1.DeleteOptions{}), "delete binding")
	}
	c.Until("the CRD is deleted", func() bool {
		return c.dynamic(definitions).Delete(c.Ctx, alive.CRD, metav1.DeleteOptions{}) == nil
	})
	deleted := c.await("is stopped", func(one *alive.Alive) bool { return one.Status.Phase == alive.Stopped })
	c.Must(c.patch(map[string]any{"metadata": map[string]any{"finalizers": nil}}), "remove the finalizer")
	c.Until("the CRD is gone", func() bool {
		_, err := c.dynamic(definitions).Get(c.Ctx, alive.CRD, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	c.expectUntouched("the forced deletion of the CRD", before)
	c.apply(deploy.Alive)
	c.await("is created anew, and protected", func(one *alive.Alive) bool {
		return one.UID != deleted.UID && phaseIs(alive.Protected, alive.ReasonProtected)(one)
	})
	c.expectUntouched("the way back", before)
	for _, event := range c.audited() {
		ours := event.User == sandbox.AliveControllerAccount.Name() && event.Writes() && event.Resource != "alives"
		if ours && !slices.Contains([]string{"leases", "events", "selfsubjectaccessreviews"}, event.Resource) {
			c.T.Errorf("the program sent %s %s/%s %s", event.Verb, event.Resource, event.Subresource, event.Name)
		}
	}
}
