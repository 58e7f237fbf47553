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

// Sidecar builds csi-provisioner v6.3. With the gate off it adds no finalizer, as before
// KEP-2644; the real program has no gate any more.
func Sidecar(env *process.Env) (*process.Program, error) { return newSidecar(env).program(), nil }

// OldSidecar builds csi-provisioner with its library up to v9, external-provisioner#1217: a finalizer
// is added and removed by an update of the whole cached volume, and the cached volume itself is
// changed before the update. When the update fails, the cache says that the finalizer is gone and
// the volume was deleted: the volume stays Terminating until another event of it arrives.
func OldSidecar(env *process.Env) (*process.Program, error) {
	s := newSidecar(env)
	s.updatesFinalizers = true
	return s.program(), nil
}

// sidecar is csi-provisioner: the claim loop creates volumes, the volume loop deletes them.
// Neither knows what the other does at the moment, and no request is durable.
type sidecar struct {
	// updatesFinalizers: the program is an old one.
	updatesFinalizers bool

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

func newSidecar(env *process.Env) *sidecar {
	s := &sidecar{
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

func (s *sidecar) program() *process.Program {
	return &process.Program{
		Loops: []*controller.Stepped{s.claimLoop.Step(), s.volumeLoop.Step(), s.saveLoop.Step()},
		Start: func(ctx context.Context) error {
			return controller.RegisterHandlers(ctx, s.handlers()...)
		},
		Memory: []any{&s.inProgress, &s.unsaved, &s.volumes.changed},
	}
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
