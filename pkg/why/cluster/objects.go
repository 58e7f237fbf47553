package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// Ref names an object of any kind.
type Ref struct {
	Resource  schema.GroupVersionResource
	Kind      string
	Namespace string
	Name      string
}

// Live reads an object of any kind. The error is that of the API server if it is not
// present, for a message to the user.
func (r *Reader) Live(ctx context.Context, ref Ref) (*unstructured.Unstructured, Presence, error) {
	type answer struct {
		object   *unstructured.Unstructured
		presence Presence
		err      error
	}
	found := remember(r, fmt.Sprintf("live %+v", ref), func(r *Reader) answer {
		object, err := r.dynamic.Resource(ref.Resource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		switch {
		case err == nil:
			return answer{object, Present, nil}
		case isAbsent(err, ref.Resource.GroupResource(), ref.Name):
			return answer{nil, Absent, err}
		}
		r.noteFailure("get", ref.Resource.GroupResource(), ref.Namespace, err)
		return answer{nil, Unseen, err}
	})
	return found.object, found.presence, found.err
}

// Find returns the Ref of an object by its apiVersion and kind, as owner references and
// manifests name them, and false if the kind is not served or discovery failed.
func (r *Reader) Find(apiVersion, kind, namespace, name string) (Ref, bool) {
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	mapping, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return Ref{}, false
	}
	if mapping.Scope.Name() == "root" {
		namespace = ""
	}
	return Ref{Resource: mapping.Resource, Kind: kind, Namespace: namespace, Name: name}, true
}

// Metadata lists the metadata of all objects of a kind in the namespace, "" for all, once,
// and reports whether all were seen. Of objects that are not being deleted it keeps no labels,
// annotations and managed fields: a cluster has hundreds of thousands of objects.
func (r *Reader) Metadata(ctx context.Context, resource schema.GroupVersionResource,
	namespace string) ([]metav1.PartialObjectMetadata, bool) {
	type answer struct {
		items []metav1.PartialObjectMetadata
		seen  bool
	}
	found := remember(r, fmt.Sprintf("metadata %s %s", resource, namespace), func(r *Reader) answer {
		var all []metav1.PartialObjectMetadata
		seen := r.eachMetadata(ctx, resource, namespace, func() { all = nil },
			func(page []metav1.PartialObjectMetadata) {
				dropManagers(page)
				for i := range page {
					if page[i].DeletionTimestamp == nil {
						page[i].Labels, page[i].Annotations = nil, nil
					}
				}
				all = append(all, page...)
			})
		return answer{all, seen}
	})
	return found.items, found.seen
}

// EachMetadata visits the pages of a list of metadata without keeping them, and reports
// whether all were seen. After an expired token visit sees objects twice.
func (r *Reader) EachMetadata(ctx context.Context, resource schema.GroupVersionResource, namespace string,
	visit func([]metav1.PartialObjectMetadata)) bool {
	return r.eachMetadata(ctx, resource, namespace, func() {}, visit)
}

// eachMetadata calls restart before the list is read again.
func (r *Reader) eachMetadata(ctx context.Context, resource schema.GroupVersionResource, namespace string,
	restart func(), visit func([]metav1.PartialObjectMetadata)) bool {
	options := metav1.ListOptions{Limit: PageSize}
	restarted := false
	for {
		page, err := r.metadata.Resource(resource).Namespace(namespace).List(ctx, options)
		switch {
		case err == nil:
			visit(page.Items)
		case apierrors.IsResourceExpired(err) && !restarted:
			restarted, options.Continue = true, ""
			restart()
			continue
		default: // also 404: discovery said that the kind is served
			r.noteFailure("list", resource.GroupResource(), namespace, err)
			return false
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return true
		}
	}
}

// ObjectOf returns how reports name the object.
func ObjectOf(object *unstructured.Unstructured) blocker.Object {
	gvk := object.GroupVersionKind()
	return blocker.Object{
		Kind: gvk.Kind, Group: gvk.Group, Namespace: object.GetNamespace(), Name: object.GetName(),
		UID: string(object.GetUID()),
	}
}

// PodsWithClaims reads the pods of the namespace that have volumes of claims, once, and reports whether all were seen. Of
// a pod that is not being deleted it keeps what tells the use of claims: a namespace may have tens of thousands of pods.
func PodsWithClaims(ctx context.Context, r *Reader, namespace string) ([]corev1.Pod, bool) {
	return Search(ctx, r, Pods, Selection{Namespace: namespace}, "pods with claims", func(pod *corev1.Pod) bool {
		volumes := slices.DeleteFunc(slices.Clone(pod.Spec.Volumes), func(volume corev1.Volume) bool {
			return volume.PersistentVolumeClaim == nil && volume.Ephemeral == nil
		})
		if len(volumes) > 0 && pod.DeletionTimestamp == nil {
			*pod = usingPod(pod, volumes)
		}
		return len(volumes) > 0
	})
}

// usingPod returns the pod with the volumes, and without what tells nothing of them.
func usingPod(pod *corev1.Pod, volumes []corev1.Volume) corev1.Pod {
	small := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			OwnerReferences: pod.OwnerReferences},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName, Volumes: volumes},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if mirrored := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirrored != "" {
		small.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: mirrored}
	}
	return small
}
