package situations

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// noPods is the annotation of Deployments whose pods the situation creates itself.
const noPods = "situations.example/no-pods"

// createDeployment creates a Deployment with one container "main", its status, and its
// pods, so many of which are ready. The other pods have not started.
func (r *place) createDeployment(namespace, name, image string, replicas, ready int32,
	change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	r.T.Helper()
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: image}}},
			},
		},
	}
	for _, f := range change {
		f(deployment)
	}
	created, err := r.Client.AppsV1().Deployments(namespace).Create(r.Ctx, deployment, metav1.CreateOptions{})
	r.Must(err, "create Deployment")
	_, itself := deployment.Annotations[noPods]
	for i := range replicas {
		if itself {
			break
		}
		set := notReady
		if i < ready {
			set = isReady
		}
		r.createReplica(created, set)
	}
	return r.setReady(created, ready)
}

// setReady writes the status of the Deployment.
func (r *place) setReady(deployment *appsv1.Deployment, ready int32) *appsv1.Deployment {
	r.T.Helper()
	replicas := ptr.Deref(deployment.Spec.Replicas, 1)
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: replicas, UpdatedReplicas: replicas,
		ReadyReplicas: ready, AvailableReplicas: ready, UnavailableReplicas: replicas - ready,
	}
	written, err := r.Client.AppsV1().Deployments(deployment.Namespace).
		UpdateStatus(r.Ctx, deployment, metav1.UpdateOptions{})
	r.Must(err, "set status of Deployment")
	return written
}

// createReplica creates a pod of the Deployment with the status.
func (r *place) createReplica(deployment *appsv1.Deployment, set func(*v1.Pod)) *v1.Pod {
	r.T.Helper()
	template := deployment.Spec.Template
	return r.createPodWithStatus(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: deployment.Name + "-7d9f8-", Namespace: deployment.Namespace,
			Labels: template.Labels},
		Spec: template.Spec,
	}, set)
}

// createPodWithStatus creates the pod on a node and writes its status.
func (r *place) createPodWithStatus(pod *v1.Pod, set func(*v1.Pod)) *v1.Pod {
	r.T.Helper()
	pod = pod.DeepCopy()
	if pod.Spec.NodeName == "" {
		pod.Spec.NodeName = "situations"
	}
	created, err := r.Client.CoreV1().Pods(pod.Namespace).Create(r.Ctx, pod, metav1.CreateOptions{})
	r.Must(err, "create pod")
	set(created)
	written, err := r.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(r.Ctx, created, metav1.UpdateOptions{})
	r.Must(err, "set status of pod")
	return written
}

// isReady makes the pod run and be ready.
func isReady(pod *v1.Pod) {
	setPod(pod, v1.PodRunning, v1.ContainerStatus{Ready: true,
		State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}}})
}

// notReady makes the pod wait for its containers.
func notReady(pod *v1.Pod) { waits("ContainerCreating", "")(pod) }

// waits makes the pod's containers wait for the reason.
func waits(reason, message string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		setPod(pod, v1.PodPending,
			v1.ContainerStatus{State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: reason, Message: message}}})
	}
}

// setPod sets the phase of the pod, and the status of all its containers.
func setPod(pod *v1.Pod, phase v1.PodPhase, status v1.ContainerStatus) {
	ready := v1.ConditionFalse
	if status.Ready {
		ready = v1.ConditionTrue
	}
	pod.Status.Phase = phase
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: ready},
		{Type: v1.ContainersReady, Status: ready}}
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		status.Name, status.Image = container.Name, container.Image
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	}
}

// createLease creates a Lease that its holder renewed the given time ago.
func (r *place) createLease(namespace, name, holder string, renewedAgo, duration time.Duration) *coordinationv1.Lease {
	r.T.Helper()
	renewed := metav1.NewMicroTime(time.Now().Add(-renewedAgo))
	lease, err := r.Client.CoordinationV1().Leases(namespace).Create(r.Ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: ptr.To(int32(duration / time.Second)), AcquireTime: &renewed,
			RenewTime: &renewed,
		},
	}, metav1.CreateOptions{})
	r.Must(err, "create Lease")
	return lease
}

// createWarning creates a warning about the object, as the component reported it the given
// time ago.
func (r *place) createWarning(object *unstructured.Unstructured, reason, message string, ago time.Duration,
	component string) {
	r.T.Helper()
	r.createEvent(object, v1.EventTypeWarning, reason, message, ago, component)
}

// createEvent creates an event of the type about the object.
func (r *place) createEvent(object *unstructured.Unstructured, eventType, reason, message string, ago time.Duration,
	component string) {
	r.T.Helper()
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	at := metav1.NewTime(time.Now().Add(-ago))
	_, err := r.Client.CoreV1().Events(namespace).Create(r.Ctx, &v1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "situations-", Namespace: namespace},
		InvolvedObject: v1.ObjectReference{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
			UID: object.GetUID(),
		},
		Type: eventType, Reason: reason, Message: message, Count: 3, FirstTimestamp: at, LastTimestamp: at,
		Source: v1.EventSource{Component: component},
	}, metav1.CreateOptions{})
	r.Must(err, "create event")
}

// dynamic returns a client for objects of all kinds.
func (r *place) dynamic() dynamic.Interface {
	r.T.Helper()
	config := rest.CopyConfig(r.Plane.RESTConfig())
	config.ContentType = runtime.ContentTypeJSON // custom resources have no protobuf encoding
	client, err := dynamic.NewForConfig(config)
	r.Must(err, "connect")
	return client
}

// definitions is the resource of the definitions of custom resources.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// createCRD defines a namespaced kind with version v1 in the group, without a schema, and
// waits until the API server serves it. A definition that exists stays.
func (r *place) createCRD(group, kind string) schema.GroupVersionResource {
	r.T.Helper()
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: strings.ToLower(kind) + "s"}
	definition := map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": resource.GroupResource().String()},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"plural": resource.Resource, "singular": strings.ToLower(kind), "kind": kind},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}
	r.apply(definitions, "", definition)
	r.Until("the API server serves "+kind, func() bool {
		_, err := r.dynamic().Resource(resource).List(r.Ctx, metav1.ListOptions{})
		return err == nil
	})
	return resource
}

// createCustom creates an object of the resource with the finalizers in the situation's
// namespace.
func (r *place) createCustom(resource schema.GroupVersionResource, kind, name string,
	finalizers ...string) *unstructured.Unstructured {
	r.T.Helper()
	return r.createCustomAs("situations", resource, kind, name, finalizers...)
}

// createCustomAs creates the object with the name of a field manager.
func (r *place) createCustomAs(manager string, resource schema.GroupVersionResource, kind, name string,
	finalizers ...string) *unstructured.Unstructured {
	r.T.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(resource.GroupVersion().String())
	object.SetKind(kind)
	object.SetName(name)
	object.SetNamespace(r.Namespace)
	object.SetFinalizers(finalizers)
	created, err := r.dynamic().Resource(resource).Namespace(r.Namespace).
		Create(r.Ctx, object, metav1.CreateOptions{FieldManager: manager})
	r.Must(err, "create "+kind)
	return created
}

// deleteCustom deletes the object and returns it as it waits, and the arguments of why.
func (r *place) deleteCustom(resource schema.GroupVersionResource, name string) []string {
	r.T.Helper()
	r.Must(r.dynamic().Resource(resource).Namespace(r.Namespace).Delete(r.Ctx, name, metav1.DeleteOptions{}),
		"delete "+name)
	return []string{resource.GroupResource().String() + "/" + name}
}

// removeFinalizers removes all finalizers of the object, as its controller does.
func (r *place) removeFinalizers(resource schema.GroupVersionResource, name string) {
	r.T.Helper()
	patch := []byte(`[{"op":"remove","path":"/metadata/finalizers"}]`)
	_, err := r.dynamic().Resource(resource).Namespace(r.Namespace).
		Patch(r.Ctx, name, "application/json-patch+json", patch, metav1.PatchOptions{})
	r.Must(err, "remove finalizers of "+name)
}

// apply applies the object.
func (r *place) apply(resource schema.GroupVersionResource, namespace string,
	object map[string]any) *unstructured.Unstructured {
	r.T.Helper()
	content := &unstructured.Unstructured{Object: object}
	applied, err := r.dynamic().Resource(resource).Namespace(namespace).
		Apply(r.Ctx, content.GetName(), content, metav1.ApplyOptions{FieldManager: "situations", Force: true})
	r.Must(err, "apply "+content.GetKind())
	return applied
}

// live reads the object.
func (r *place) live(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	r.T.Helper()
	object, err := r.dynamic().Resource(resource).Namespace(r.Namespace).Get(r.Ctx, name, metav1.GetOptions{})
	r.Must(err, "get "+name)
	return object
}
