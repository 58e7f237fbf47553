package upstream

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// Options select what older versions of csi-provisioner do. The zero value is v6.3 with
// version 13 of its library sig-storage-lib-external-provisioner.
type Options struct {
	// UpdateFinalizers is external-provisioner#1217, library up to v9: a finalizer is added
	// and removed by an update of the whole cached volume, and the cached volume itself is
	// changed before the update. When the update fails, the cache says that the finalizer is
	// gone and the volume was deleted: nothing removes the finalizer, and the volume stays
	// Terminating until another event of it arrives.
	UpdateFinalizers bool
	// ShiftFinalizers is external-provisioner#1235, library v10.0.0: the finalizer is removed
	// from the array that the cached volume has too. The patch is then computed from two
	// wrong lists: it removes the finalizer behind, of another program, and keeps its own.
	// The cache says that the volume was already deleted, until its next event.
	ShiftFinalizers bool
	// CacheOwnVolume, library up to v10: the volume is written into the cache of the informer
	// once it was created, over whatever the watch delivered meanwhile, and without
	// resource version and phase. The volume is not seen as Released until its next event.
	CacheOwnVolume bool
}

// Sidecar builds csi-provisioner v6.3. With the gate off it adds no finalizer, as before
// KEP-2644; the real program has no gate any more.
func Sidecar(env *process.Env) (*process.Program, error) { return Options{}.Sidecar(env) }

// Sidecar builds csi-provisioner as the options say.
func (o Options) Sidecar(env *process.Env) (*process.Program, error) {
	s := newSidecar(env, o)
	return &process.Program{
		Loops: []*controller.Stepped{s.claimLoop.Step(), s.volumeLoop.Step(), s.saveLoop.Step()},
		Start: func(ctx context.Context) error {
			return controller.RegisterHandlers(ctx, s.handlers()...)
		},
		Memory: []any{&s.inProgress, &s.unsaved, &s.volumes.changed},
	}, nil
}

// sidecar is csi-provisioner: the claim loop creates volumes, the volume loop deletes them.
// Neither knows what the other does at the moment, and no request is durable.
type sidecar struct {
	Options

	client kubernetes.Interface
	driver process.Driver
	honor  bool

	claimInformer, classInformer, attachmentInformer cache.SharedIndexInformer
	volumes                                          *volumeCache

	mu sync.Mutex
	// inProgress are the claims, by UID, whose CreateVolume may still have an effect. A
	// restart loses them.
	inProgress map[string]*v1.PersistentVolumeClaim
	// unsaved are the volumes, by name, that the driver created and the API server did not
	// take. A restart loses them.
	unsaved map[string]*v1.PersistentVolume

	claimLoop, volumeLoop, saveLoop *controller.Loop
}

func newSidecar(env *process.Env, options Options) *sidecar {
	s := &sidecar{
		Options:            options,
		client:             env.Client,
		driver:             env.Driver,
		honor:              env.Honor,
		claimInformer:      env.Informers["persistentvolumeclaims"],
		classInformer:      env.Informers["storageclasses"],
		attachmentInformer: env.Informers["volumeattachments"],
		volumes:            newVolumeCache(env.Informers["persistentvolumes"]),
		inProgress:         map[string]*v1.PersistentVolumeClaim{},
		unsaved:            map[string]*v1.PersistentVolume{},
	}
	s.claimLoop = controller.NewLoop("claims", backoff, s.reconcileClaim)
	s.volumeLoop = controller.NewLoop("volumes", backoff, s.reconcileVolume)
	s.saveLoop = controller.NewLoop("unsavedpvs", backoff, s.save)
	return s
}

// handlers enqueue claims by UID. A deleted claim or volume enqueues nothing.
func (s *sidecar) handlers() []controller.EventHandler {
	return []controller.EventHandler{
		{Informer: s.claimInformer, Handler: controller.OnChange(
			func(_, claim *v1.PersistentVolumeClaim) { s.claimLoop.Enqueue(string(claim.UID)) },
			func(*v1.PersistentVolumeClaim) {})},
		{Informer: s.volumes.informer, Handler: controller.OnChange(
			func(_, volume *v1.PersistentVolume) {
				s.volumes.drop(volume.Name)
				s.volumeLoop.Enqueue(volume.Name)
			},
			func(volume *v1.PersistentVolume) { s.volumes.drop(volume.Name) })},
	}
}
