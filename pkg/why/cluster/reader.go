package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	snapshots "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Reader reads one cluster. It remembers all it has read: make a new one to read again.
type Reader struct {
	*connection
	// parent is the Reader of which this is a scope, or nil.
	parent *Reader

	mu         sync.Mutex
	incomplete []string
}

// connection is what all scopes of a Reader share.
type connection struct {
	kubernetes kubernetes.Interface
	snapshots  snapshots.Interface
	dynamic    dynamic.Interface
	metadata   metadata.Interface
	discovery  discovery.CachedDiscoveryInterface
	mapper     meta.ResettableRESTMapper
	server     *serverClock
	memory     memo
	failures   sync.Map // the last error by verb, resource and namespace
}

// Scope returns a Reader that shares what was read, and whose Incomplete names only what could not be read by
// the scope itself.
func (r *Reader) Scope() *Reader { return &Reader{connection: r.connection, parent: r} }

// Apart returns a Reader that shares what was read, and keeps to itself what could not be read.
func (r *Reader) Apart() *Reader { return &Reader{connection: r.connection} }

// NewReader returns a Reader for the cluster. It sends no request yet.
func NewReader(config *rest.Config) (*Reader, error) { return NewReaderWithClock(config, time.Now) }

// NewReaderWithClock returns a Reader on a machine whose clock is local.
func NewReaderWithClock(config *rest.Config, local func() time.Time) (*Reader, error) {
	r := &Reader{connection: &connection{server: &serverClock{local: local}}}
	config = rest.CopyConfig(config)
	if config.UserAgent == "" { // a shared HTTP client gets no default
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	config.QPS = -1 // a few requests in all; the API server's own limits hold
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return roundTripper{next, r.server} })
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	if err := r.connect(config, client); err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return r, nil
}

func (r *Reader) connect(config *rest.Config, client *http.Client) (err error) {
	compact := rest.CopyConfig(config) // protobuf: lists are half as large
	compact.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	compact.ContentType = runtime.ContentTypeProtobuf
	if r.kubernetes, err = kubernetes.NewForConfigAndClient(compact, client); err != nil {
		return err
	}
	if r.snapshots, err = snapshots.NewForConfigAndClient(config, client); err != nil {
		return err
	}
	if r.dynamic, err = dynamic.NewForConfigAndClient(config, client); err != nil {
		return err
	}
	if r.metadata, err = metadata.NewForConfigAndClient(metadata.ConfigFor(config), client); err != nil {
		return err
	}
	uncached, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return err
	}
	r.discovery = memory.NewMemCacheClient(uncached)
	r.mapper = restmapper.NewDeferredDiscoveryRESTMapper(r.discovery)
	return nil
}

// Kubernetes returns the client, for requests that the Reader does not have.
func (r *Reader) Kubernetes() kubernetes.Interface { return r.kubernetes }

// Dynamic returns the dynamic client, for probes.
func (r *Reader) Dynamic() dynamic.Interface { return r.dynamic }

// Mapper returns the mapping from kinds to resources.
func (r *Reader) Mapper() meta.RESTMapper { return r.mapper }

// Discovery returns the kinds that the API server serves, read once.
func (r *Reader) Discovery() discovery.CachedDiscoveryInterface { return r.discovery }

// Now returns the time by the clock of the API server.
func (r *Reader) Now() time.Time { return r.server.now() }

// Requests returns the number of requests sent so far.
func (r *Reader) Requests() int { return r.server.requests() }

// Incomplete returns a sentence for everything that could not be read. A right that is missing in all namespaces
// is named once.
func (r *Reader) Incomplete() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.incomplete), func(text string) bool {
		everywhere := inNamespace.ReplaceAllString(text, "${1};")
		return everywhere != text && slices.Contains(r.incomplete, everywhere)
	})
}

// inNamespace matches a missing right in one namespace, as Failure names it.
var inNamespace = regexp.MustCompile(`^(no right to list \S+) in namespace \S+;`)

// Note adds a sentence about something that could not be read.
func (r *Reader) Note(format string, values ...any) { r.note(fmt.Sprintf(format, values...)) }

func (r *Reader) note(text string) {
	if r.parent != nil {
		r.parent.note(text)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.incomplete, text) {
		r.incomplete = append(r.incomplete, text)
	}
}

// Reach returns an error if the API server does not answer, or does not know the user. Without
// this request each of many lists would fail for the same reason.
func (r *Reader) Reach(ctx context.Context) error {
	request := r.kubernetes.Discovery().RESTClient().Get().AbsPath("/version").SetHeader("Accept", runtime.ContentTypeJSON)
	_, err := request.Do(ctx).Raw()
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && !apierrors.IsUnauthorized(err) && !apierrors.IsTimeout(err) {
		return nil
	}
	return err
}

// memo remembers answers by key, and computes each once.
type memo struct{ answers sync.Map }

// remembered is an answer, and what could not be read for it.
type remembered struct {
	value any
	notes []string
}

// remember returns the answer of the key, computed by read at the first call. Each caller notes what could
// not be read for the answer.
func remember[T any](r *Reader, key string, read func(r *Reader) T) T {
	once, _ := r.memory.answers.LoadOrStore(key, sync.OnceValue(func() remembered {
		scope := r.Apart()
		value := read(scope)
		return remembered{value, scope.Incomplete()}
	}))
	found := once.(func() remembered)()
	for _, note := range found.notes {
		r.note(note)
	}
	return found.value.(T)
}

// recall returns the answer of the key if it was asked for, and waits for an answer under way.
func recall[T any](r *Reader, key string) (answer T, known bool) {
	once, known := r.memory.answers.Load(key)
	if !known {
		return answer, false
	}
	return once.(func() remembered)().value.(T), true
}

// Remember returns what is derived from the cluster under the key, computed by read at the
// first call with a Reader of the cluster.
func Remember[T any](r *Reader, key string, read func(r *Reader) T) T {
	return remember(r, "derived "+key, read)
}

// Objects lists all objects of a kind, once, for kinds without a type here, and reports
// whether all were seen.
func (r *Reader) Objects(ctx context.Context, resource schema.GroupVersionResource,
	namespace string) ([]unstructured.Unstructured, bool) {
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

func (r *Reader) objects(ctx context.Context, resource schema.GroupVersionResource,
	namespace string) (all []unstructured.Unstructured, err error) {
	err = r.eachObject(ctx, resource, namespace, func() { all = nil },
		func(page []unstructured.Unstructured) { all = append(all, page...) })
	if err != nil {
		return nil, err
	}
	return all, nil
}

// EachObject visits the pages of a list of any kind without keeping them, and reports whether all were seen. After an
// expired token visit sees objects twice.
func (r *Reader) EachObject(ctx context.Context, resource schema.GroupVersionResource, namespace string,
	visit func([]unstructured.Unstructured)) bool {
	err := r.eachObject(ctx, resource, namespace, func() {}, visit)
	if err != nil {
		r.noteFailure("list", resource.GroupResource(), namespace, err)
	}
	return err == nil
}

// eachObject calls restart before the list is read again.
func (r *Reader) eachObject(ctx context.Context, resource schema.GroupVersionResource, namespace string, restart func(),
	visit func([]unstructured.Unstructured)) error {
	options := metav1.ListOptions{Limit: PageSize}
	for restarted := false; ; {
		page, err := r.dynamic.Resource(resource).Namespace(namespace).List(ctx, options)
		switch {
		case err == nil:
			visit(page.Items)
		case apierrors.IsResourceExpired(err) && !restarted:
			restarted, options.Continue = true, ""
			restart()
			continue
		default:
			return err
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// Volumes reads all PersistentVolumes, once, and reports whether all were seen. Of a volume
// it keeps what tells its disk, its claim and whether it waits: clusters have tens of
// thousands of volumes.
func Volumes(ctx context.Context, r *Reader) ([]corev1.PersistentVolume, bool) {
	type answer struct {
		volumes []corev1.PersistentVolume
		seen    bool
	}
	found := remember(r, "compact volumes", func(r *Reader) answer {
		var all []corev1.PersistentVolume
		seen := each(ctx, r, PersistentVolumes, Selection{}, func() { all = nil }, func(page []corev1.PersistentVolume) {
			for i := range page {
				all = append(all, compact(&page[i]))
			}
		})
		return answer{all, seen}
	})
	return found.volumes, found.seen
}

// compact returns the volume without its status, its managed fields, and the labels and
// annotations that tell nothing of the disk of a CSI volume.
func compact(volume *corev1.PersistentVolume) corev1.PersistentVolume {
	small := corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: volume.Name, UID: volume.UID, CreationTimestamp: volume.CreationTimestamp,
			DeletionTimestamp: volume.DeletionTimestamp,
		},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: volume.Spec.PersistentVolumeSource, ClaimRef: volume.Spec.ClaimRef,
			PersistentVolumeReclaimPolicy: volume.Spec.PersistentVolumeReclaimPolicy,
		},
		Status: corev1.PersistentVolumeStatus{Phase: volume.Status.Phase,
			LastPhaseTransitionTime: volume.Status.LastPhaseTransitionTime},
	}
	if volume.Spec.CSI == nil { // the translation of in-tree volumes reads them
		small.Labels, small.Annotations = volume.Labels, volume.Annotations
		small.Spec.NodeAffinity, small.Spec.AccessModes = volume.Spec.NodeAffinity, volume.Spec.AccessModes
	}
	return small
}
