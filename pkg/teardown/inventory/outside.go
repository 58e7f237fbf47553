package inventory

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/balancer"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// outside is what is kept of an object whose controller made something outside of the cluster.
type outside struct {
	key
	kind      string
	item      teardown.Kind
	resource  schema.GroupVersionResource
	version   string
	uid       types.UID
	created   time.Time
	addresses []string
	// driver is the class of a load balancer or route.
	driver string
	// content is the name of the content of a snapshot.
	content string
	grouped bool
	// finalizers are those of controllers.
	finalizers []string
	state      balancer.State
}

func newOutside(kind string, item teardown.Kind, resource schema.GroupVersionResource, object metav1.Object) *outside {
	_, preserved := object.GetLabels()[PreserveLabel]
	o := &outside{
		key: keyOf(object), kind: kind, item: item, resource: resource, version: object.GetResourceVersion(),
		uid: object.GetUID(), created: object.GetCreationTimestamp().Time,
	}
	for _, name := range object.GetFinalizers() {
		if isControllers(name) {
			o.finalizers = append(o.finalizers, name)
		}
	}
	o.state = balancer.State{
		Preserved: preserved, Deleting: object.GetDeletionTimestamp() != nil, Held: len(o.finalizers) > 0,
	}
	return o
}

// isControllers reports whether the finalizer is not one of the garbage collector.
func isControllers(name string) bool {
	return name != metav1.FinalizerDeleteDependents && name != metav1.FinalizerOrphanDependents
}

// address adds addresses, which are host names or IP addresses.
func (o *outside) address(addresses ...string) {
	for _, a := range addresses {
		if a != "" && !slices.Contains(o.addresses, a) {
			o.addresses = append(o.addresses, a)
		}
	}
	o.state.Addressed = len(o.addresses) > 0
}

// factsOfService returns nil for a Service that never had a load balancer.
func factsOfService(s *v1.Service) *outside {
	o := newOutside("Service", teardown.LoadBalancer, v1.SchemeGroupVersion.WithResource("services"), s)
	for _, ingress := range s.Status.LoadBalancer.Ingress {
		o.address(ingress.IP, ingress.Hostname)
	}
	if s.Spec.LoadBalancerClass != nil {
		o.driver = *s.Spec.LoadBalancerClass
	}
	if s.Spec.Type == v1.ServiceTypeLoadBalancer {
		o.state.Kind = balancer.ServiceLB
		return o
	}
	// A finalizer of another program on such a Service says nothing of a load balancer.
	o.state.Kind, o.state.Held = balancer.ServiceOther, slices.ContainsFunc(s.Finalizers, isBalancers)
	if !o.state.Held {
		return nil
	}
	return o
}

// isBalancers reports whether the finalizer on a Service keeps a load balancer.
func isBalancers(name string) bool {
	family, known := families.Find(name, "Service", "")
	return known && slices.Contains(family.Kinds, "Service")
}

func factsOfIngress(n *networkingv1.Ingress) *outside {
	o := newOutside("Ingress", teardown.Ingress, networkingv1.SchemeGroupVersion.WithResource("ingresses"), n)
	o.state.Kind = balancer.Route
	for _, ingress := range n.Status.LoadBalancer.Ingress {
		o.address(ingress.IP, ingress.Hostname)
	}
	if n.Spec.IngressClassName != nil {
		o.driver = *n.Spec.IngressClassName
	}
	return o
}

func factsOfGateway(u *unstructured.Unstructured) *outside {
	o := newOutside("Gateway", teardown.Gateway, u.GroupVersionKind().GroupVersion().WithResource("gateways"), u)
	o.state.Kind, o.driver = balancer.Route, text(u, "spec", "gatewayClassName")
	addresses, _, _ := unstructured.NestedSlice(u.Object, "status", "addresses")
	for _, entry := range addresses {
		if fields, is := entry.(map[string]any); is {
			value, _ := fields["value"].(string)
			o.address(value)
		}
	}
	return o
}

func factsOfSnapshot(u *unstructured.Unstructured) *outside {
	o := newOutside("VolumeSnapshot", teardown.Snapshot,
		u.GroupVersionKind().GroupVersion().WithResource("volumesnapshots"), u)
	o.state.Kind, o.content = balancer.Snapshot, text(u, "status", "boundVolumeSnapshotContentName")
	o.grouped = text(u, "status", "volumeGroupSnapshotName") != "" ||
		slices.ContainsFunc(u.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.Kind == "VolumeGroupSnapshot" })
	return o
}

// content is what is kept of a VolumeSnapshotContent.
type content struct {
	name, driver, handle string
	uid                  types.UID
	created              time.Time
	size                 int64
	snapshot             key
	snapshotUID          types.UID
	deletable, held      bool
}

func factsOfContent(u *unstructured.Unstructured) *content {
	_, preserved := u.GetLabels()[PreserveLabel]
	handle := text(u, "status", "snapshotHandle")
	static := text(u, "spec", "source", "snapshotHandle")
	if handle == "" {
		handle = static
	}
	size, _, _ := unstructured.NestedInt64(u.Object, "status", "restoreSize")
	return &content{
		name: u.GetName(), driver: text(u, "spec", "driver"), handle: handle, uid: u.GetUID(),
		created: u.GetCreationTimestamp().Time, size: size,
		snapshot:    key{text(u, "spec", "volumeSnapshotRef", "namespace"), text(u, "spec", "volumeSnapshotRef", "name")},
		snapshotUID: types.UID(text(u, "spec", "volumeSnapshotRef", "uid")),
		deletable:   text(u, "spec", "deletionPolicy") == "Delete" && !preserved && static == "",
		held:        slices.ContainsFunc(u.GetFinalizers(), isControllers),
	}
}

// text returns a field of the object, "" if there is none.
func text(u *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(u.Object, fields...)
	return strings.TrimSpace(value)
}
