package engine

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller/intern"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
)

// NewInformers returns informers whose claims and volumes are those of the provisioner
// only, and how the claims came.
func NewInformers(client kubernetes.Interface,
	names provisioning.Names) (informers.SharedInformerFactory, provisioning.Arrivals) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(intern.New().Transform))
	claims, arrivals := provisioning.NewClaims(client, names)
	factory.InformerFor(&v1.PersistentVolumeClaim{}, func(kubernetes.Interface,
		time.Duration) cache.SharedIndexInformer {
		return claims
	})
	factory.InformerFor(&v1.PersistentVolume{}, func(client kubernetes.Interface,
		_ time.Duration) cache.SharedIndexInformer {
		return provisioning.NewVolumes(client, names)
	})
	return factory, arrivals
}
