package cluster

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Exists reads, once, whether an object exists, by its metadata: nothing of its content is read.
func (r *Reader) Exists(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) Presence {
	return remember(r, fmt.Sprintf("exists %s %s/%s", resource, namespace, name), func(r *Reader) Presence {
		_, err := r.metadata.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err == nil:
			return Present
		case isAbsent(err, resource.GroupResource(), name):
			return Absent
		}
		r.noteFailure("get", resource.GroupResource(), namespace, err)
		return Unseen
	})
}
