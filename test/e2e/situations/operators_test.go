package situations

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// custom is a custom resource of an operator that the table of finalizers has.
type custom struct{ group, kind, finalizer string }

var (
	kedaObject  = custom{"keda.sh", "ScaledObject", "finalizer.keda.sh"}
	rayCluster  = custom{"ray.io", "RayCluster", "ray.io/gcs-ft-redis-cleanup-finalizer"}
	kueueFlavor = custom{"kueue.x-k8s.io", "ResourceFlavor", "kueue.x-k8s.io/resource-in-use"}
	machine     = custom{"kubevirt.io", "VirtualMachine", "kubevirt.io/virtualMachineControllerFinalize"}
	prometheus  = custom{"monitoring.coreos.com", "Prometheus", "monitoring.coreos.com/status-cleanup"}
	challenge   = custom{"acme.cert-manager.io", "Challenge", "acme.cert-manager.io/finalizer"}
	targetGroup = custom{"elbv2.k8s.aws", "TargetGroupBinding", "elbv2.k8s.aws/resources"}
	telemetry   = custom{"opentelemetry.io", "OpenTelemetryCollector", "opentelemetrycollector.opentelemetry.io/finalizer"}
	application = custom{"argoproj.io", "Application", "resources-finalizer.argocd.argoproj.io"}
	rabbit      = custom{"rabbitmq.com", "RabbitmqCluster", "deletion.finalizers.rabbitmqclusters.rabbitmq.com"}
	widget      = custom{"situations.example", "Widget", "cleanup.situations.example/widget"}
)

func (c custom) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: c.group, Version: "v1", Resource: strings.ToLower(c.kind) + "s"}
}

// createAndDelete creates the object "object" with its finalizer, and deletes it.
func (c custom) createAndDelete(r *place) []string {
	r.createCustom(r.createCRD(c.group, c.kind), c.kind, "object", c.finalizer)
	return r.deleteCustom(c.resource(), "object")
}

// finish removes the finalizer, as the operator does.
func (c custom) finish(r *place) { r.removeFinalizers(c.resource(), "object") }

// operators returns the situations of services and operators.
func operators() []situation {
	return slices.Concat(jobLoops(), clouds(), knownOperators(), livingOperators(), unknownFinalizers())
}

// jobLoops returns the situations of a loop of kube-controller-manager.
func jobLoops() []situation {
	return []situation{
		{
			number: "40", name: "the Job controller has not counted the pod yet", alone: true,
			build: func(r *place) []string {
				r.createLease(metav1.NamespaceSystem, "kube-controller-manager", "node-1_1234", time.Second, 15*time.Second)
				return r.deleteJobPod()
			},
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ControllerActs}, next: "get lease kube-controller-manager",
			step: func(r *place) { r.removeFinalizers(v1.SchemeGroupVersion.WithResource("pods"), "pod") },
		},
		{
			number: "40b", name: "the Job controller is switched off", alone: true,
			build: func(r *place) []string {
				r.createControllerManager("node-1", "--controllers=*,-job-controller")
				r.createLease(metav1.NamespaceSystem, "kube-controller-manager", "node-1_1234", time.Second, 15*time.Second)
				return r.deleteJobPod()
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone},
			next: "switch the loop job-controller on again",
			step: func(r *place) { r.removeFinalizers(v1.SchemeGroupVersion.WithResource("pods"), "pod") },
		},
		{
			number: "40c", name: "the Job controller is switched off in one of two", alone: true,
			build: func(r *place) []string {
				r.createControllerManager("node-1", "--controllers=*,-job")
				r.createControllerManager("node-2")
				r.createLease(metav1.NamespaceSystem, "kube-controller-manager", "node-2_1234", time.Second, day)
				return r.deleteJobPod()
			},
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ControllerActs},
			next: "logs pod/kube-controller-manager-node-2",
			step: func(r *place) { r.removeFinalizers(v1.SchemeGroupVersion.WithResource("pods"), "pod") },
		},
	}
}

// clouds returns the situations of controllers for machines and load balancers.
func clouds() []situation {
	return []situation{
		{
			number: "41", name: "an autoscaler drains the node",
			build: func(r *place) []string {
				r.createDeployment(r.Namespace, "karpenter", "public.example/karpenter/controller:1.5.0", 1, 1)
				return r.deleteNode("karpenter.sh/termination")
			},
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ControllerActs}, next: "logs deployment/karpenter",
			step: func(r *place) { r.finishNode() },
		},
		{
			number: "42", name: "the cloud controller cannot delete the load balancer",
			build: func(r *place) []string {
				args := r.deleteService()
				r.createWarning(r.live(services, "service"), "SyncLoadBalancerFailed",
					"Error deleting load balancer: quota \"calls\" exceeded", time.Minute, "service-controller")
				return args
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerFails}, next: "describe services service",
			step: func(r *place) { r.removeFinalizers(services, "service") },
		},
		{
			number: "43", name: "the cloud controller is outside of the cluster and silent",
			build:   func(r *place) []string { return r.deleteService() },
			verdict: blocker.Unknown, roots: []blocker.Reason{blocker.ControllerUnseen}, next: "control plane",
			step: func(r *place) { r.removeFinalizers(services, "service") },
		},
	}
}

// knownOperators returns the situations of operators that the table of finalizers has.
func knownOperators() []situation {
	return []situation{
		{
			number: "44", name: "the controller of the Ingress is uninstalled",
			build:   func(r *place) []string { return r.deleteIngress() },
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone},
			next: "install aws-load-balancer-controller again",
			step: func(r *place) { r.removeFinalizers(ingresses, "ingress") },
		},
		{
			number: "44b", name: "the controller of the target group is uninstalled, its definition remains",
			build:   targetGroup.createAndDelete,
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone},
			next: "install aws-load-balancer-controller again", step: targetGroup.finish,
		},
		{
			number: "44c", name: "the webhook of the operator calls a namespace that is gone",
			build: func(r *place) []string {
				r.createWebhook(telemetry.group, r.Namespace+"-gone")
				return telemetry.createAndDelete(r)
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone}, next: "last resort", step: telemetry.finish,
		},
		{
			number: "45", name: "the operator has 0 replicas",
			build: func(r *place) []string {
				r.createDeployment(r.Namespace, "keda-operator", "registry.example:5000/kedacore/keda:2.17", 0, 0)
				r.createLease(r.Namespace, "operator.keda.sh", "keda-operator-7d9f8-x_1", time.Hour, 15*time.Second)
				return kedaObject.createAndDelete(r)
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone},
			next: "scale deployment/keda-operator --replicas=1", step: kedaObject.finish,
		},
		{
			number: "46", name: "the operator crashes again and again",
			build: func(r *place) []string {
				deployment := r.createDeployment(r.Namespace, "ray", "quay.example/kuberay/operator:v1.4", 1, 0, withoutPods)
				r.createReplica(deployment, waits("CrashLoopBackOff", "back-off 5m0s restarting failed container"))
				return rayCluster.createAndDelete(r)
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerFails}, next: "--previous",
			step: rayCluster.finish,
		},
	}
}

// livingOperators returns the situations of operators that look gone, and may live.
func livingOperators() []situation {
	return []situation{
		{
			number: "44d", name: "a webhook of another operator of the group calls a namespace that is gone",
			build: func(r *place) []string {
				r.createWebhook(application.group, r.Namespace+"-gone", "eventbus")
				return application.createAndDelete(r)
			},
			verdict: blocker.Unknown, roots: []blocker.Reason{blocker.ControllerUnseen}, step: application.finish,
		},
		{
			number: "45b", name: "the operator has 0 replicas, and its pod held a Lease just now",
			build: func(r *place) []string {
				r.createDeployment(r.Namespace, "rabbit",
					"registry.example/rabbitmqoperator/cluster-operator@sha256:f9b7bdc4a5c0c1d6b8a8ee5c6c1c8f1e7f5d2d6c0b4c3b2a1f0e9d8c7b6a5f4e", 0, 0)
				r.createLease(r.Namespace, "renamed", "rabbit-7d9f8-x_1", 0, time.Hour)
				return rabbit.createAndDelete(r)
			},
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ControllerActs}, step: rabbit.finish,
		},
	}
}

// unknownFinalizers returns the situations of finalizers that the table does not have.
func unknownFinalizers() []situation {
	situations := []situation{
		{
			number: "47", name: "four operators have the manager of the finalizer",
			build: func(r *place) []string {
				for _, name := range []string{"red", "green", "blue", "gray"} {
					r.createDeployment(r.Namespace, name, "registry.example/"+name+":v1", 1, 1, withCommand("/manager"))
				}
				return r.deleteWidget("manager")
			},
			next: "--show-managed-fields", evidence: []string{"Deployment", "/red fits", "/green fits", "/blue fits",
				"/gray fits", "set by manager"},
		},
		{
			number: "48", name: "the finalizer was set with kubectl",
			build:    func(r *place) []string { return r.deleteWidget("kubectl-edit") },
			evidence: []string{"set by kubectl-edit", "set by hand or restored"},
		},
		{
			number: "49", name: "the managed fields are emptied",
			build: func(r *place) []string {
				args := r.deleteWidget("painter")
				object := r.live(widget.resource(), "object")
				object.SetManagedFields([]metav1.ManagedFieldsEntry{{}})
				_, err := r.dynamic().Resource(widget.resource()).Namespace(r.Namespace).Update(r.Ctx, object, metav1.UpdateOptions{})
				r.Must(err, "empty the managed fields")
				return args
			},
			evidence: []string{"managedFields are empty"},
		},
		{
			number: "50", name: "a second program sets the finalizer again",
			build:    func(r *place) []string { return r.fightOverWidget() },
			evidence: []string{"set by painter", "sweeper writes other fields"},
		},
	}
	situations = append(situations, fourPods())
	for i := range situations {
		situations[i].verdict, situations[i].roots, situations[i].step = blocker.Unknown, []blocker.Reason{blocker.UnknownFinalizer}, widget.finish
	}
	return situations
}

// fourPods returns the situation of operators that run as pods without workloads.
func fourPods() situation {
	return situation{
		number: "47b", name: "four pods without workloads have the manager of the finalizer",
		build: func(r *place) []string {
			for _, name := range []string{"one", "two", "three", "four"} {
				r.createPodWithStatus(&v1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.Namespace},
					Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "registry.example/" + name + ":v1", Command: []string{"/painter"}}}},
				}, isReady)
			}
			return r.deleteWidget("painter")
		},
		next: "logs pod/one", evidence: []string{"/one fits", "/two fits", "/three fits", "/four fits"},
	}
}

var (
	services  = v1.SchemeGroupVersion.WithResource("services")
	ingresses = networkingv1.SchemeGroupVersion.WithResource("ingresses")
)

// withoutPods is for Deployments whose pods the situation creates itself.
func withoutPods(deployment *appsv1.Deployment) {
	deployment.Annotations = map[string]string{noPods: ""}
}

// withCommand sets the command of the container.
func withCommand(words ...string) func(*appsv1.Deployment) {
	return func(deployment *appsv1.Deployment) { deployment.Spec.Template.Spec.Containers[0].Command = words }
}

// createWebhook creates a configuration of a webhook that is never called for the objects of
// the situations, and whose Service is in the namespace. Without resources it is for all.
func (r *place) createWebhook(group, namespace string, resources ...string) {
	r.T.Helper()
	if len(resources) == 0 {
		resources = []string{"*"}
	}
	configuration := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: r.Namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "situations." + group, SideEffects: ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			ClientConfig:  admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: namespace, Name: "webhook"}},
			FailurePolicy: ptr.To(admissionv1.Ignore),
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Connect},
				Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: resources},
			}},
		}},
	}
	_, err := r.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(r.Ctx, configuration, metav1.CreateOptions{})
	r.Must(err, "create webhook configuration")
}

// deleteJobPod deletes a finished pod that its Job has not counted.
func (r *place) deleteJobPod() []string {
	r.T.Helper()
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: r.Namespace, Finalizers: []string{"batch.kubernetes.io/job-tracking"}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "image"}}, RestartPolicy: v1.RestartPolicyNever},
	}
	r.createPodWithStatus(pod, func(pod *v1.Pod) { pod.Status.Phase = v1.PodSucceeded })
	r.Must(r.Client.CoreV1().Pods(r.Namespace).Delete(r.Ctx, "pod", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}), "delete pod")
	return []string{"pod/pod"}
}

// createControllerManager creates the pod of kube-controller-manager on the node.
func (r *place) createControllerManager(node string, args ...string) {
	r.T.Helper()
	r.createPodWithStatus(&v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "kube-controller-manager-" + node, Namespace: metav1.NamespaceSystem, Labels: map[string]string{"component": "kube-controller-manager"}},
		Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{
			Name: "kube-controller-manager", Image: "registry.example/kube-controller-manager:v1.36.3", Command: append([]string{"kube-controller-manager"}, args...),
		}}},
	}, isReady)
}

// deleteNode deletes a node that is named like the situation's namespace.
func (r *place) deleteNode(finalizer string) []string {
	r.T.Helper()
	nodes := r.Client.CoreV1().Nodes()
	_, err := nodes.Create(r.Ctx, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.Namespace, Finalizers: []string{finalizer}}}, metav1.CreateOptions{})
	r.Must(err, "create node")
	r.Must(nodes.Delete(r.Ctx, r.Namespace, metav1.DeleteOptions{}), "delete node")
	return []string{"node/" + r.Namespace}
}

func (r *place) finishNode() {
	r.T.Helper()
	_, err := r.Client.CoreV1().Nodes().Patch(r.Ctx, r.Namespace, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	r.Must(err, "remove finalizers of node")
}

// deleteService deletes a service whose load balancer is not cleaned up.
func (r *place) deleteService() []string {
	r.T.Helper()
	_, err := r.Client.CoreV1().Services(r.Namespace).Create(r.Ctx, &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "service", Finalizers: []string{"service.kubernetes.io/load-balancer-cleanup"}},
		Spec:       v1.ServiceSpec{Type: v1.ServiceTypeLoadBalancer, Ports: []v1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	r.Must(err, "create service")
	r.Must(r.Client.CoreV1().Services(r.Namespace).Delete(r.Ctx, "service", metav1.DeleteOptions{}), "delete service")
	return []string{"service/service"}
}

// deleteIngress deletes an Ingress with a load balancer of AWS.
func (r *place) deleteIngress() []string {
	r.T.Helper()
	backend := &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "service", Port: networkingv1.ServiceBackendPort{Number: 80}}}
	client := r.Client.NetworkingV1().Ingresses(r.Namespace)
	_, err := client.Create(r.Ctx, &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: "ingress", Finalizers: []string{"ingress.k8s.aws/resources"}},
		Spec:       networkingv1.IngressSpec{DefaultBackend: backend},
	}, metav1.CreateOptions{})
	r.Must(err, "create ingress")
	r.Must(client.Delete(r.Ctx, "ingress", metav1.DeleteOptions{}), "delete ingress")
	return []string{"ingress/ingress"}
}

// deleteWidget deletes an object with an unknown finalizer that the manager set.
func (r *place) deleteWidget(manager string) []string {
	r.T.Helper()
	resource := r.createCRD(widget.group, widget.kind)
	r.createCustomAs(manager, resource, widget.kind, "object", widget.finalizer)
	return r.deleteCustom(resource, "object")
}

// fightOverWidget lets one program remove the finalizer and write its progress, and another
// set the finalizer again, and then deletes the object.
func (r *place) fightOverWidget() []string {
	r.T.Helper()
	resource := r.createCRD(widget.group, widget.kind)
	r.createCustomAs("painter", resource, widget.kind, "object", widget.finalizer)
	for range 3 {
		r.patchAs("sweeper", resource, map[string]any{"finalizers": nil, "annotations": map[string]any{"situations.example/swept": time.Now().String()}})
		r.patchAs("painter", resource, map[string]any{"finalizers": []string{widget.finalizer}})
	}
	return r.deleteCustom(resource, "object")
}

// patchAs changes the metadata of the object "object" in the name of the manager.
func (r *place) patchAs(manager string, resource schema.GroupVersionResource, metadata map[string]any) {
	r.T.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	r.Must(err, "make patch")
	_, err = r.dynamic().Resource(resource).Namespace(r.Namespace).Patch(r.Ctx, "object", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	r.Must(err, "patch object")
}

// evidenceOf returns the texts of the evidence of all blockers.
func evidenceOf(report blocker.Report) string {
	var texts []string
	for root := range blocker.Roots(report.Blockers) {
		for _, evidence := range root.Evidence {
			texts = append(texts, evidence.Text)
		}
	}
	return strings.Join(texts, "\n")
}
