package cluster

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/internal/answer"
)

// The kinds that are read with their types.
var (
	PersistentVolumes = newKind("PersistentVolume", "", "persistentvolumes",
		func(r *Reader, _ string) objectClient[*corev1.PersistentVolume, *corev1.PersistentVolumeList] {
			return r.kubernetes.CoreV1().PersistentVolumes()
		},
		func(list *corev1.PersistentVolumeList) ([]corev1.PersistentVolume, string) {
			return list.Items, list.Continue
		})
	PersistentVolumeClaims = newKind("PersistentVolumeClaim", "", "persistentvolumeclaims",
		func(r *Reader, ns string) objectClient[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList] {
			return r.kubernetes.CoreV1().PersistentVolumeClaims(ns)
		},
		func(list *corev1.PersistentVolumeClaimList) ([]corev1.PersistentVolumeClaim, string) {
			return list.Items, list.Continue
		})
	Pods = newKind("Pod", "", "pods",
		func(r *Reader, ns string) objectClient[*corev1.Pod, *corev1.PodList] {
			return r.kubernetes.CoreV1().Pods(ns)
		},
		func(list *corev1.PodList) ([]corev1.Pod, string) { return list.Items, list.Continue })
	Nodes = newKind("Node", "", "nodes",
		func(r *Reader, _ string) objectClient[*corev1.Node, *corev1.NodeList] {
			return r.kubernetes.CoreV1().Nodes()
		},
		func(list *corev1.NodeList) ([]corev1.Node, string) { return list.Items, list.Continue })
	Namespaces = newKind("Namespace", "", "namespaces",
		func(r *Reader, _ string) objectClient[*corev1.Namespace, *corev1.NamespaceList] {
			return r.kubernetes.CoreV1().Namespaces()
		},
		func(list *corev1.NamespaceList) ([]corev1.Namespace, string) { return list.Items, list.Continue })
	Services = newKind("Service", "", "services",
		func(r *Reader, ns string) objectClient[*corev1.Service, *corev1.ServiceList] {
			return r.kubernetes.CoreV1().Services(ns)
		},
		func(list *corev1.ServiceList) ([]corev1.Service, string) { return list.Items, list.Continue })
	Ingresses = newKind("Ingress", "networking.k8s.io", "ingresses",
		func(r *Reader, ns string) objectClient[*networkingv1.Ingress, *networkingv1.IngressList] {
			return r.kubernetes.NetworkingV1().Ingresses(ns)
		},
		func(list *networkingv1.IngressList) ([]networkingv1.Ingress, string) {
			return list.Items, list.Continue
		})
	ServiceAccounts = newKind("ServiceAccount", "", "serviceaccounts",
		func(r *Reader, ns string) objectClient[*corev1.ServiceAccount, *corev1.ServiceAccountList] {
			return r.kubernetes.CoreV1().ServiceAccounts(ns)
		},
		func(list *corev1.ServiceAccountList) ([]corev1.ServiceAccount, string) {
			return list.Items, list.Continue
		})
	Events = newKind("Event", "", "events",
		func(r *Reader, ns string) objectClient[*corev1.Event, *corev1.EventList] {
			return r.kubernetes.CoreV1().Events(ns)
		},
		func(list *corev1.EventList) ([]corev1.Event, string) { return list.Items, list.Continue })
	Deployments = newKind("Deployment", "apps", "deployments",
		func(r *Reader, ns string) objectClient[*appsv1.Deployment, *appsv1.DeploymentList] {
			return r.kubernetes.AppsV1().Deployments(ns)
		},
		func(list *appsv1.DeploymentList) ([]appsv1.Deployment, string) { return list.Items, list.Continue })
	StatefulSets = newKind("StatefulSet", "apps", "statefulsets",
		func(r *Reader, ns string) objectClient[*appsv1.StatefulSet, *appsv1.StatefulSetList] {
			return r.kubernetes.AppsV1().StatefulSets(ns)
		},
		func(list *appsv1.StatefulSetList) ([]appsv1.StatefulSet, string) { return list.Items, list.Continue })
	DaemonSets = newKind("DaemonSet", "apps", "daemonsets",
		func(r *Reader, ns string) objectClient[*appsv1.DaemonSet, *appsv1.DaemonSetList] {
			return r.kubernetes.AppsV1().DaemonSets(ns)
		},
		func(list *appsv1.DaemonSetList) ([]appsv1.DaemonSet, string) { return list.Items, list.Continue })
	Leases = newKind("Lease", "coordination.k8s.io", "leases",
		func(r *Reader, ns string) objectClient[*coordinationv1.Lease, *coordinationv1.LeaseList] {
			return r.kubernetes.CoordinationV1().Leases(ns)
		},
		func(list *coordinationv1.LeaseList) ([]coordinationv1.Lease, string) {
			return list.Items, list.Continue
		})
	PodDisruptionBudgets = newKind("PodDisruptionBudget", "policy", "poddisruptionbudgets",
		func(r *Reader, ns string) objectClient[*policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudgetList] {
			return r.kubernetes.PolicyV1().PodDisruptionBudgets(ns)
		},
		func(list *policyv1.PodDisruptionBudgetList) ([]policyv1.PodDisruptionBudget, string) {
			return list.Items, list.Continue
		})
	EndpointSlices = newKind("EndpointSlice", "discovery.k8s.io", "endpointslices",
		func(r *Reader, ns string) objectClient[*discoveryv1.EndpointSlice, *discoveryv1.EndpointSliceList] {
			return r.kubernetes.DiscoveryV1().EndpointSlices(ns)
		},
		func(list *discoveryv1.EndpointSliceList) ([]discoveryv1.EndpointSlice, string) {
			return list.Items, list.Continue
		})
	CSIDrivers = newKind("CSIDriver", "storage.k8s.io", "csidrivers",
		func(r *Reader, _ string) objectClient[*storagev1.CSIDriver, *storagev1.CSIDriverList] {
			return r.kubernetes.StorageV1().CSIDrivers()
		},
		func(list *storagev1.CSIDriverList) ([]storagev1.CSIDriver, string) { return list.Items, list.Continue })
	CSINodes = newKind("CSINode", "storage.k8s.io", "csinodes",
		func(r *Reader, _ string) objectClient[*storagev1.CSINode, *storagev1.CSINodeList] {
			return r.kubernetes.StorageV1().CSINodes()
		},
		func(list *storagev1.CSINodeList) ([]storagev1.CSINode, string) { return list.Items, list.Continue })
	StorageClasses = newKind("StorageClass", "storage.k8s.io", "storageclasses",
		func(r *Reader, _ string) objectClient[*storagev1.StorageClass, *storagev1.StorageClassList] {
			return r.kubernetes.StorageV1().StorageClasses()
		},
		func(list *storagev1.StorageClassList) ([]storagev1.StorageClass, string) {
			return list.Items, list.Continue
		})
	VolumeAttachments = newKind("VolumeAttachment", "storage.k8s.io", "volumeattachments",
		func(r *Reader, _ string) objectClient[*storagev1.VolumeAttachment, *storagev1.VolumeAttachmentList] {
			return r.kubernetes.StorageV1().VolumeAttachments()
		},
		func(list *storagev1.VolumeAttachmentList) ([]storagev1.VolumeAttachment, string) {
			return list.Items, list.Continue
		})
	ValidatingWebhookConfigurations = newKind("ValidatingWebhookConfiguration", "admissionregistration.k8s.io",
		"validatingwebhookconfigurations",
		func(r *Reader, _ string) objectClient[*admissionv1.ValidatingWebhookConfiguration,
			*admissionv1.ValidatingWebhookConfigurationList] {
			return r.kubernetes.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		},
		func(list *admissionv1.ValidatingWebhookConfigurationList) ([]admissionv1.ValidatingWebhookConfiguration, string) {
			return list.Items, list.Continue
		})
	MutatingWebhookConfigurations = newKind("MutatingWebhookConfiguration", "admissionregistration.k8s.io",
		"mutatingwebhookconfigurations",
		func(r *Reader, _ string) objectClient[*admissionv1.MutatingWebhookConfiguration,
			*admissionv1.MutatingWebhookConfigurationList] {
			return r.kubernetes.AdmissionregistrationV1().MutatingWebhookConfigurations()
		},
		func(list *admissionv1.MutatingWebhookConfigurationList) ([]admissionv1.MutatingWebhookConfiguration, string) {
			return list.Items, list.Continue
		})
	ClusterRoleBindings = newKind("ClusterRoleBinding", "rbac.authorization.k8s.io", "clusterrolebindings",
		func(r *Reader, _ string) objectClient[*rbacv1.ClusterRoleBinding, *rbacv1.ClusterRoleBindingList] {
			return r.kubernetes.RbacV1().ClusterRoleBindings()
		},
		func(list *rbacv1.ClusterRoleBindingList) ([]rbacv1.ClusterRoleBinding, string) {
			return list.Items, list.Continue
		})
	ClusterRoles = newKind("ClusterRole", "rbac.authorization.k8s.io", "clusterroles",
		func(r *Reader, _ string) objectClient[*rbacv1.ClusterRole, *rbacv1.ClusterRoleList] {
			return r.kubernetes.RbacV1().ClusterRoles()
		},
		func(list *rbacv1.ClusterRoleList) ([]rbacv1.ClusterRole, string) { return list.Items, list.Continue })
	VolumeSnapshots = newKind("VolumeSnapshot", "snapshot.storage.k8s.io", "volumesnapshots",
		func(r *Reader, ns string) objectClient[*snapshotv1.VolumeSnapshot, *snapshotv1.VolumeSnapshotList] {
			return r.snapshots.SnapshotV1().VolumeSnapshots(ns)
		},
		func(list *snapshotv1.VolumeSnapshotList) ([]snapshotv1.VolumeSnapshot, string) {
			return list.Items, list.Continue
		})
	VolumeSnapshotContents = newKind("VolumeSnapshotContent", "snapshot.storage.k8s.io", "volumesnapshotcontents",
		func(r *Reader, _ string) objectClient[*snapshotv1.VolumeSnapshotContent, *snapshotv1.VolumeSnapshotContentList] {
			return r.snapshots.SnapshotV1().VolumeSnapshotContents()
		},
		func(list *snapshotv1.VolumeSnapshotContentList) ([]snapshotv1.VolumeSnapshotContent, string) {
			return list.Items, list.Continue
		})
)

// Kind reads objects of one kind.
type Kind[T any] struct {
	// Name is the kind, such as "Pod".
	Name string
	// Resource is the resource of the kind.
	Resource schema.GroupResource

	get  func(ctx context.Context, r *Reader, namespace, name string) (*T, error)
	list func(ctx context.Context, r *Reader, namespace string, options metav1.ListOptions) ([]T, string, error)
}

// isCustom reports whether the kind is a custom resource, which a cluster may lack. If a kind of
// Kubernetes is not found, something between us and the API server hides it.
func (k Kind[T]) isCustom() bool { return k.Resource.Group == snapshotv1.GroupName }

// objectClient is what the clients of all kinds have in common.
type objectClient[T, L any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (T, error)
	List(ctx context.Context, options metav1.ListOptions) (L, error)
}

// newKind returns a Kind. client returns the client for a namespace, page the items and the
// continue token of a list.
func newKind[T, L any](name, group, resource string, client func(*Reader, string) objectClient[*T, *L],
	page func(*L) ([]T, string)) Kind[T] {
	return Kind[T]{
		Name: name, Resource: schema.GroupResource{Group: group, Resource: resource},
		get: func(ctx context.Context, r *Reader, namespace, object string) (*T, error) {
			return client(r, namespace).Get(ctx, object, metav1.GetOptions{})
		},
		list: func(ctx context.Context, r *Reader, namespace string, options metav1.ListOptions) ([]T, string, error) {
			list, err := client(r, namespace).List(ctx, options)
			if listed, is := any(list).(metav1.ListInterface); is {
				_, err = answer.CheckedList(listed, err)
			}
			if err != nil {
				return nil, "", err
			}
			items, next := page(list)
			return items, next, nil
		},
	}
}
