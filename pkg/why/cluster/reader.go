package cluster

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	snapshots "github.com/kubernetes-csi/external-snapshotter/client/v8/clientset/versioned"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
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
