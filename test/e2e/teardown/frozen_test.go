package teardown

import (
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// expectNothingComesBack checks that nothing brings a disk or load balancer back after exit code 0, also not after a
// restart of the API server.
func (r *rig) expectNothingComesBack() {
	r.T.Helper()
	r.expectRefusals("end")
	r.Must(r.Plane.Restart(r.Ctx, func() error { return nil }), "restart the API server")
	r.expectRefusals("restart")
	pods, err := r.Client.CoreV1().Pods(r.Namespace).List(r.Ctx, metav1.ListOptions{LabelSelector: "app in (db,end,restart)"})
	r.Must(err, "list pods")
	if len(pods.Items) > 0 {
		r.T.Errorf("%d pods of StatefulSets came back", len(pods.Items))
	}
	claims, err := r.Client.CoreV1().PersistentVolumeClaims("").List(r.Ctx, metav1.ListOptions{})
	r.Must(err, "list claims")
	if len(claims.Items) != 1 || claims.Items[0].Name != "archive" {
		r.T.Errorf("the cluster has the claims %+v", claims.Items)
	}
}

// expectRefusals checks what the freeze refuses after the event, and that it refuses nothing else.
func (r *rig) expectRefusals(after string) {
	r.T.Helper()
	core, created := r.Client.CoreV1(), metav1.CreateOptions{}
	internal := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "internal-" + after}, Spec: v1.ServiceSpec{
		Ports: []v1.ServicePort{{Port: 80}}}}
	outward := internal.DeepCopy()
	outward.Name, outward.Spec.Type = "outward-"+after, v1.ServiceTypeLoadBalancer
	_, claim := core.PersistentVolumeClaims(r.Namespace).Create(r.Ctx, r.NewClaim("claim-"+after, harness.DeleteClass), created)
	_, outwardErr := core.Services(r.Namespace).Create(r.Ctx, outward, created)
	r.expectOrdinary(after, internal)
	_, turned := core.Services(r.Namespace).Patch(r.Ctx, internal.Name, types.MergePatchType,
		[]byte(`{"spec":{"type":"LoadBalancer"}}`), metav1.PatchOptions{})
	for what, err := range map[string]error{"a claim": claim, "a Service of type LoadBalancer": outwardErr,
		"a Service that becomes one": turned} {
		if !apierrors.IsForbidden(err) {
			r.T.Errorf("after the %s, %s is answered with %v", after, what, err)
		}
	}
	r.AwaitEvent(r.createSet(after, 1), "FailedCreate")
}

// expectOrdinary creates what has no disk and no load balancer.
func (r *rig) expectOrdinary(after string, internal *v1.Service) {
	r.T.Helper()
	core, created, meta := r.Client.CoreV1(), metav1.CreateOptions{}, metav1.ObjectMeta{Name: "ordinary-" + after}
	_, err := core.Services(r.Namespace).Create(r.Ctx, internal, created)
	r.Must(err, "create a Service of type ClusterIP")
	_, err = core.ConfigMaps(r.Namespace).Create(r.Ctx, &v1.ConfigMap{ObjectMeta: meta}, created)
	r.Must(err, "create a ConfigMap")
	_, err = core.Namespaces().Create(r.Ctx, &v1.Namespace{ObjectMeta: meta}, created)
	r.Must(err, "create a namespace")
	r.CreateVolume(meta.Name, v1.PersistentVolumeReclaimRetain)
	r.createUser(meta.Name)
	labels := map[string]string{"app": meta.Name}
	_, err = r.Client.AppsV1().Deployments(r.Namespace).Create(r.Ctx, &appsv1.Deployment{ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: v1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main",
				Image: "image"}}}}}}, created)
	r.Must(err, "create a Deployment")
	r.Until("the Deployment has a pod", func() bool {
		pods, err := core.Pods(r.Namespace).List(r.Ctx, metav1.ListOptions{LabelSelector: "app=" + meta.Name})
		return err == nil && len(pods.Items) > 0
	})
}
