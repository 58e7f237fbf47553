package cluster

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/internal/enum"
)

// PageSize is the number of objects in one list request. The lists name no
// resourceVersion: with resourceVersion=0 the API server would ignore the limit.
const PageSize = 500

// Selection narrows a list. The zero value selects all objects.
type Selection struct {
	Namespace string // "" for all namespaces
	Labels    string // a label selector
	Fields    string // a field selector
}

// Get reads one object, once. The object is nil unless it is present.
func Get[T any](ctx context.Context, r *Reader, kind Kind[T], namespace, name string) (*T, Presence) {
	found := getOnce(ctx, r, kind, namespace, name)
	return found.object, found.presence
}

// GotAt returns when the object was read, see ListedAt.
func GotAt[T any](ctx context.Context, r *Reader, kind Kind[T], namespace, name string) time.Time {
	return getOnce(ctx, r, kind, namespace, name).at
}

// getAnswer is what a request for an object returned.
type getAnswer[T any] struct {
	object   *T
	presence Presence
	at       time.Time
}

// getOnce reads an object, unless it has been read.
func getOnce[T any](ctx context.Context, r *Reader, kind Kind[T], namespace, name string) getAnswer[T] {
	key := fmt.Sprintf("get %s %s/%s", kind.Resource, namespace, name)
	return remember(r, key, func(r *Reader) getAnswer[T] {
		object, err := kind.get(ctx, r, namespace, name)
		switch {
		case err == nil:
			return getAnswer[T]{object, Present, r.Now()}
		case isAbsent(err, kind.Resource, name):
			return getAnswer[T]{nil, Absent, r.Now()}
		}
		r.noteFailure("get", kind.Resource, namespace, err)
		return getAnswer[T]{nil, Unseen, r.Now()}
	})
}

// alwaysServed are the groups that every API server serves. Of other groups a 404 may mean the kind.
var alwaysServed = map[string]bool{
	corev1.GroupName: true, appsv1.GroupName: true, coordinationv1.GroupName: true, storagev1.GroupName: true,
	"apiextensions.k8s.io": true,
}

// isAbsent reports whether the error says that the object, or its kind, does not exist.
func isAbsent(err error, resource schema.GroupResource, name string) bool {
	return answer.IsAbsent(err, name) || apierrors.IsNotFound(err) && !alwaysServed[resource.Group]
}

// listAnswer is what a list returned.
type listAnswer[T any] struct {
	items []T
	seen  bool
	at    time.Time
}

// List reads all objects of the selection, once, and reports whether all were seen. After a
// list of all namespaces, no namespace is listed again.
func List[T any](ctx context.Context, r *Reader, kind Kind[T], selection Selection) ([]T, bool) {
	if narrowed, known := narrow(r, kind, selection); known {
		return narrowed, true
	}
	found := listOnce(ctx, r, kind, selection)
	return found.items, found.seen
}

// ListedAt returns when the objects of a list were read, by the clock of the API server. What
// ages, such as a Lease, is judged by this time: what is read of it later may have been renewed.
func ListedAt[T any](ctx context.Context, r *Reader, kind Kind[T], selection Selection) time.Time {
	if at := listOnce(ctx, r, kind, selection).at; !at.IsZero() {
		return at
	}
	return r.Now()
}

// listOnce reads all objects of the selection, unless they have been read.
func listOnce[T any](ctx context.Context, r *Reader, kind Kind[T], selection Selection) listAnswer[T] {
	return remember(r, listKey(kind, selection), func(r *Reader) (found listAnswer[T]) {
		found.seen = each(ctx, r, kind, selection, func() { found = listAnswer[T]{} }, func(page []T) {
			if found.at.IsZero() { // all pages are of the version of the first
				found.at = r.Now()
			}
			dropManagers(page)
			found.items = append(found.items, page...)
		})
		return found
	})
}

// dropManagers drops the managed fields, half of an object, of those that are not being deleted.
func dropManagers[T any](page []T) {
	for i := range page {
		if object, ok := any(&page[i]).(metav1.Object); ok && object.GetDeletionTimestamp() == nil {
			object.SetManagedFields(nil)
		}
	}
}

func listKey[T any](kind Kind[T], selection Selection) string {
	return fmt.Sprintf("list %s %+v", kind.Resource, selection)
}

// narrow returns the objects of the selection from a list of all namespaces, and false
// if there was none, or not all was seen.
func narrow[T any](r *Reader, kind Kind[T], selection Selection) ([]T, bool) {
	selector, err := labels.Parse(selection.Labels)
	if selection.Namespace == "" || selection.Fields != "" || err != nil {
		return nil, false
	}
	all, known := recall[listAnswer[T]](r, listKey(kind, Selection{}))
	if !known || !all.seen {
		return nil, false
	}
	var found []T
	for i := range all.items {
		object, ok := any(&all.items[i]).(metav1.Object)
		if ok && object.GetNamespace() == selection.Namespace && selector.Matches(labels.Set(object.GetLabels())) {
			found = append(found, all.items[i])
		}
	}
	return found, true
}

// Each visits the pages of a list without keeping them, and reports whether all were seen.
// A list whose token expires is read again from the beginning: visit sees objects twice.
func Each[T any](ctx context.Context, r *Reader, kind Kind[T], selection Selection, visit func(page []T)) bool {
	return each(ctx, r, kind, selection, func() {}, visit)
}

// each is Each for those who keep the objects: it calls restart before the list is read again.
func each[T any](ctx context.Context, r *Reader, kind Kind[T], selection Selection, restart func(),
	visit func(page []T)) bool {
	options := metav1.ListOptions{Limit: PageSize, LabelSelector: selection.Labels, FieldSelector: selection.Fields}
	restarted := false
	for {
		page, next, err := kind.list(ctx, r, selection.Namespace, options)
		switch {
		case err == nil:
			visit(page)
		case apierrors.IsNotFound(err) && kind.isCustom(): // the kind is not defined: it has no objects
			return true
		case apierrors.IsResourceExpired(err) && !restarted:
			restarted, options.Continue = true, ""
			restart()
			continue
		default:
			r.noteFailure("list", kind.Resource, selection.Namespace, err)
			return false
		}
		if options.Continue = next; next == "" {
			return true
		}
	}
}

// Search reads all objects of the selection, once for the name, and reports whether all were seen. It keeps those that
// match, as matches leaves them: clusters have tens of thousands of pods.
func Search[T any](ctx context.Context, r *Reader, kind Kind[T], selection Selection, name string,
	matches func(*T) bool) ([]T, bool) {
	found := remember(r, fmt.Sprintf("search %s %+v", name, selection), func(r *Reader) (found listAnswer[T]) {
		found.seen = each(ctx, r, kind, selection, func() { found.items = nil }, func(page []T) {
			dropManagers(page)
			for i := range page {
				if matches(&page[i]) {
					found.items = append(found.items, page[i])
				}
			}
		})
		return found
	})
	return found.items, found.seen
}

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

// Presence says whether an object exists.
type Presence int

const (
	// Unseen: the object could not be read.
	Unseen Presence = iota
	// Absent: the API server says that the object does not exist.
	Absent
	// Present: the object was read.
	Present
)

// String returns the name of the value.
func (p Presence) String() string { return enum.Name(p, "unseen", "absent", "present") }
