package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Objects lists all objects of a kind, once, for kinds without a type here, and reports
// whether all were seen.
func (r *Reader) Objects(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, bool) {
	type answer struct {
		items []unstructured.Unstructured
		seen  bool
	}
	found := remember(r, fmt.Sprintf("objects %s %s", resource, namespace), func(r *Reader) answer {
		items, err := r.objects(ctx, resource, namespace)
		if err != nil {
			r.noteFailure("list", resource.GroupResource(), namespace, err)
		}
		return answer{items, err == nil}
	})
	return found.items, found.seen
}

func (r *Reader) objects(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	options := metav1.ListOptions{Limit: PageSize}
	for restarted := false; ; {
		page, err := r.dynamic.Resource(resource).Namespace(namespace).List(ctx, options)
		switch {
		case err == nil:
			all = append(all, page.Items...)
		case apierrors.IsResourceExpired(err) && !restarted:
			all, restarted, options.Continue = nil, true, ""
			continue
		default:
			return nil, err
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return all, nil
		}
	}
}
