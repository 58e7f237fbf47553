package process

import (
	"context"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// Env is the world as one program sees it.
type Env struct {
	// Client sends each request to the model, which answers when it wants to.
	Client kubernetes.Interface
	// Informers are the caches by resource, such as persistentvolumes. They change when the
	// model lets the program see a new version.
	Informers map[string]cache.SharedIndexInformer
	// Driver is the storage system.
	Driver Driver
	// Filter has an informer leave out objects, as the filtered informers of a program do. It
	// is called while the program is built.
	Filter func(resource string, keep func(object runtime.Object) bool)
	// End ends the process, which cannot go on.
	End func(error)
	// Streamed reports whether the version of a claim came by a watch, not by a list.
	Streamed func(version string) bool
	// Creations are the claims whose creation the program saw. The first process leads from the beginning of the world on.
	Creations *controller.Creations
	Options
}

// Options are the flags of a program.
type Options struct {
	// Honor is the gate HonorPVReclaimPolicy, Journaled the gate ProvisioningJournal.
	Honor, Journaled bool
	// Term is the number of leaders that the program has had, this process included.
	Term int32
}

// Driver are the calls to the storage system.
type Driver interface {
	CreateVolume(ctx context.Context, request *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error)
	DeleteVolume(ctx context.Context, handle string, secrets map[string]string) error
}

// DriverName is the name of the CSI driver in the model.
const DriverName = "csi.example.com"

// Program is a program as the model runs it.
type Program struct {
	// Loops are the loops whose keys the model reconciles one by one.
	Loops []*controller.Stepped
	// Start registers the event handlers and does what precedes the first reconcile. It may
	// send requests.
	Start func(ctx context.Context) error
	// Run starts what works beside the loops, such as the writer of the journal; nil for
	// nothing. It returns once the context has ended.
	Run func(ctx context.Context)
	// Pending reports whether the program does something as soon as a second or two have
	// passed; nil for never.
	Pending func() bool
	// Memory are pointers to all that the program remembers. Clients, locks and functions in
	// it do not count.
	Memory []any
}

// Build makes a program that begins with empty caches.
type Build func(env *Env) (*Program, error)
