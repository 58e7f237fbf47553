package situations

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// deleteNamespace deletes the situation's own namespace.
func (r *place) deleteNamespace() []string {
	r.T.Helper()
	r.Must(r.Client.CoreV1().Namespaces().Delete(r.Ctx, r.Namespace, metav1.DeleteOptions{}), "delete namespace")
	return []string{"namespace/" + r.Namespace}
}

// finalizeNamespace removes the finalizer in spec, as the namespace controller does.
func (r *place) finalizeNamespace() {
	r.T.Helper()
	namespace, err := r.Client.CoreV1().Namespaces().Get(r.Ctx, r.Namespace, metav1.GetOptions{})
	r.Must(err, "get namespace")
	namespace.Spec.Finalizers = nil
	_, err = r.Client.CoreV1().Namespaces().Finalize(r.Ctx, namespace, metav1.UpdateOptions{})
	r.Must(err, "finalize namespace")
}

// claimAllRemoved writes conditions that say that the namespace has no content.
func (r *place) claimAllRemoved() {
	r.T.Helper()
	namespace, err := r.Client.CoreV1().Namespaces().Get(r.Ctx, r.Namespace, metav1.GetOptions{})
	r.Must(err, "get namespace")
	namespace.Status.Conditions = []v1.NamespaceCondition{{
		Type: v1.NamespaceContentRemaining, Status: v1.ConditionFalse, Reason: "ContentRemoved",
		Message: "All content successfully removed",
	}}
	_, err = r.Client.CoreV1().Namespaces().UpdateStatus(r.Ctx, namespace, metav1.UpdateOptions{})
	r.Must(err, "write conditions")
}

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

const aggregated = "v1.aggregated.situations.example"

// createAggregatedAPI registers an API behind a service without endpoints.
func (r *place) createAggregatedAPI() {
	r.T.Helper()
	_, err := r.Client.CoreV1().Services("default").Create(r.Ctx, &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "aggregated"},
		Spec:       v1.ServiceSpec{Selector: map[string]string{"app": "aggregated"}, Ports: []v1.ServicePort{{Port: 443}}},
	}, metav1.CreateOptions{})
	r.Must(err, "create service")
	_, err = r.Client.DiscoveryV1().EndpointSlices("default").Create(r.Ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "aggregated",
			Labels: map[string]string{discoveryv1.LabelServiceName: "aggregated"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}, metav1.CreateOptions{})
	r.Must(err, "create EndpointSlice")
	r.apply(apiServices, "", map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": aggregated},
		"spec": map[string]any{
			"group": "aggregated.situations.example", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"namespace": "default", "name": "aggregated"},
		},
	})
	r.Until("the API server reports the aggregated API", func() bool {
		_, err := r.Client.Discovery().ServerResourcesForGroupVersion("aggregated.situations.example/v1")
		api, getErr := r.dynamic().Resource(apiServices).Get(r.Ctx, aggregated, metav1.GetOptions{})
		return apierrors.IsServiceUnavailable(err) && getErr == nil && api.Object["status"] != nil
	})
}

func (r *place) deleteAggregatedAPI() {
	r.T.Helper()
	r.Must(r.dynamic().Resource(apiServices).Delete(r.Ctx, aggregated, metav1.DeleteOptions{}), "delete APIService")
}

// namespaces returns the situations of namespaces and of definitions of custom resources.
func namespaces() []situation {
	return slices.Concat(remainingObjects(), foreignFinalizers(), pendingObjects(), unreachable(), unconverted(),
		[]situation{
			{
				number: "64", name: "a definition is deleted, and an object waits for an operator that is gone", alone: true,
				build: func(r *place) []string {
					r.createCustom(r.createStoppedTofu(), "Terraform", "plan", tofuFinalizer)
					r.Must(r.dynamic().Resource(definitions).Delete(r.Ctx, plans.GroupResource().String(), metav1.DeleteOptions{}),
						"delete definition")
					r.Until("the API server deletes the object",
						func() bool { return r.live(plans, "plan").GetDeletionTimestamp() != nil })
					return []string{"crd/" + plans.GroupResource().String()}
				},
				verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone}, next: "tofu",
				step: func(r *place) { r.removeFinalizers(plans, "plan") },
			},
			{
				number: "65", name: "a namespace is empty, and the namespace controller is down", alone: true,
				build: func(r *place) []string {
					r.createStoppedManager()
					return r.deleteNamespace()
				},
				verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone}, next: "/finalize",
				step: (*place).finalizeNamespace,
			},
			{
				number: "g1", name: "a namespace is empty, and the namespace controller runs outside",
				build: (*place).deleteNamespace, verdict: blocker.Unknown, roots: []blocker.Reason{blocker.ControllerUnseen},
				step: (*place).finalizeNamespace,
			},
		})
}

// remainingObjects returns the situations of namespaces in which objects remain.
func remainingObjects() []situation {
	return []situation{
		{
			number: "59", name: "a namespace has an object that waits for an operator that is gone", alone: true,
			build: func(r *place) []string {
				stopped := *r
				session := *r.Session
				stopped.Session = &session
				stopped.Namespace = "default"
				stopped.createStoppedTofu()
				r.createCustom(plans, "Terraform", "plan", tofuFinalizer)
				r.deleteCustom(plans, "plan")
				return r.deleteNamespace()
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ControllerGone}, next: "tofu",
			step: func(r *place) {
				r.removeFinalizers(plans, "plan")
				r.finalizeNamespace()
			},
		},
		{
			number: "60", name: "the conditions say that all is removed, and an object is left",
			build: func(r *place) []string {
				r.createCustom(r.createCRD(widgets.Group, "Widget"), "Widget", "left", "unknown.situations.example/f")
				r.deleteCustom(widgets, "left")
				args := r.deleteNamespace()
				r.claimAllRemoved()
				return args
			},
			verdict: blocker.Unknown, roots: []blocker.Reason{blocker.UnknownFinalizer},
			step: func(r *place) {
				r.removeFinalizers(widgets, "left")
				r.finalizeNamespace()
			},
		},
	}
}

// foreignFinalizers returns the situations of namespaces with a finalizer of another program.
func foreignFinalizers() []situation {
	return []situation{
		{
			number: "59r", name: "Rancher's finalizer is on a namespace, and Rancher runs in another cluster",
			build: func(r *place) []string {
				name := r.Namespace + "-rancher"
				namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
					Finalizers: []string{"controller.cattle.io/namespace-auth"}}}
				_, err := r.Client.CoreV1().Namespaces().Create(r.Ctx, namespace, metav1.CreateOptions{})
				r.Must(err, "create namespace")
				r.Must(r.Client.CoreV1().Namespaces().Delete(r.Ctx, name, metav1.DeleteOptions{}), "delete namespace")
				return []string{"namespace/" + name}
			},
			verdict: blocker.Unknown, roots: []blocker.Reason{blocker.ControllerUnseen}, next: "in the cluster of Rancher",
		},
	}
}

// pendingObjects returns the situations of objects that are not deleted yet.
func pendingObjects() []situation {
	return []situation{
		{
			number: "g2", name: "the namespace controller has not deleted an object yet", alone: true,
			build: func(r *place) []string {
				r.leadManager()
				r.createConfigMap("left")
				return r.deleteNamespace()
			},
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ContentRemains}, next: "delete configmaps left",
			step: func(r *place) {
				r.Must(r.Client.CoreV1().ConfigMaps(r.Namespace).Delete(r.Ctx, "left", metav1.DeleteOptions{}), "delete ConfigMap")
				r.finalizeNamespace()
			},
		},
	}
}

func (r *place) createConfigMap(name string, finalizers ...string) {
	r.T.Helper()
	object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}}
	_, err := r.Client.CoreV1().ConfigMaps(r.Namespace).Create(r.Ctx, object, metav1.CreateOptions{})
	r.Must(err, "create ConfigMap")
}

// unreachable returns the situations of namespaces with kinds that cannot be listed.
func unreachable() []situation {
	finish := func(r *place) {
		r.deleteAggregatedAPI()
		r.finalizeNamespace()
	}
	return []situation{
		{
			number: "61", name: "an aggregated API is away, and its service has no endpoints", alone: true,
			build: func(r *place) []string {
				r.createAggregatedAPI()
				return r.deleteNamespace()
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.APIUnreachable}, next: "delete apiservice " + aggregated,
			step: finish,
		},
		{
			number: "62", name: "an aggregated API is away, and its pods are starting", alone: true,
			build: func(r *place) []string {
				r.createDeployment("default", "aggregated", "registry.example/aggregated:v1", 1, 0)
				r.createAggregatedAPI()
				return r.deleteNamespace()
			},
			verdict: blocker.Waiting, roots: []blocker.Reason{blocker.APIUnreachable}, next: "get apiservice " + aggregated,
			step: finish,
		},
	}
}

// unconverted returns the situations of objects that the API server cannot convert.
func unconverted() []situation {
	return []situation{
		{
			number: "63", name: "the conversion webhook of a definition has no endpoints", alone: true,
			build: func(r *place) []string {
				r.createUnconverted(r.Namespace)
				return r.deleteNamespace()
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ConversionFails},
			next: "gadgets.conversion.situations.example",
			step: func(r *place) {
				r.stopConversion("gadgets.conversion.situations.example")
				gadgets := schema.GroupVersionResource{Group: "conversion.situations.example", Version: "v2", Resource: "gadgets"}
				r.Until("the object is deleted", func() bool {
					return r.dynamic().Resource(gadgets).Namespace(r.Namespace).Delete(r.Ctx, "gadget", metav1.DeleteOptions{}) == nil
				})
				r.removeFinalizers(gadgets, "gadget")
				r.Must(r.Client.CoreV1().Services(r.Namespace).Delete(r.Ctx, "converter", metav1.DeleteOptions{}), "delete service")
				r.finalizeNamespace()
			},
		},
		{
			number: "63b", name: "an object cannot be converted", alone: true,
			build: func(r *place) []string {
				r.createUnconverted(r.Namespace)
				return []string{"gadgets.v2.conversion.situations.example/gadget"}
			},
			verdict: blocker.Stuck, roots: []blocker.Reason{blocker.ConversionFails},
			next: "gadgets.conversion.situations.example",
		},
	}
}

// stopConversion lets the API server convert objects of the definition without webhook.
func (r *place) stopConversion(definition string) {
	r.T.Helper()
	_, err := r.dynamic().Resource(definitions).Patch(r.Ctx, definition, types.MergePatchType,
		[]byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`), metav1.PatchOptions{})
	r.Must(err, "change conversion")
}
