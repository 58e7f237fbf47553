package provisioning

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/partial"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Names are the driver names that select the claims and volumes of the caches. The caches
// leave out the objects of other drivers.
type Names struct {
	// Driver is the name of the driver.
	Driver string
	// Migrated are the names of the in-tree plugins that the driver replaces.
	Migrated []string
	// PluginOf returns the name of the in-tree plugin of a volume's source, "" for
	// none. It may be nil if the driver replaces no plugin.
	PluginOf func(volume *v1.PersistentVolume) string
	// Static: static volumes without a CSI source are cached too. They name no provisioner,
	// and can have the disk of a provisioner that is no CSI driver.
	Static bool
}

func (n Names) include(name string) bool {
	return name != "" && (name == n.Driver || slices.Contains(n.Migrated, name))
}

// OwnsClaim reports whether the claim belongs into the cache. The annotations of the claim
// name the provisioner; the class does not count. Every provisioner also caches the sources
// of clones and the claims that need them.
func (n Names) OwnsClaim(claim *v1.PersistentVolumeClaim) bool {
	return n.include(claim.Annotations[storage.AnnStorageProvisioner]) ||
		n.include(claim.Annotations[storage.AnnBetaStorageProvisioner]) ||
		n.include(claim.Annotations[storage.AnnMigratedTo]) ||
		finalizer.Has(claim.Finalizers, finalizer.CloneSource) ||
		protection.NeededSource(claim).Kind != storage.SourceNone
}

// OwnsVolume reports whether the volume belongs into the cache: volumes of the driver, and
// volumes of another provisioner that may have a disk of the driver.
func (n Names) OwnsVolume(volume *v1.PersistentVolume) bool {
	if volume.Spec.CSI != nil && volume.Spec.CSI.Driver == n.Driver {
		return true
	}
	if n.Static && volume.Spec.CSI == nil && !storage.IsDynamic(volume) {
		return true
	}
	return external.Owns(n.Driver, volume) || n.include(volume.Annotations[storage.AnnDynamicallyProvisioned]) ||
		len(n.Migrated) > 0 && volume.Spec.CSI == nil && n.include(n.PluginOf(volume))
}

// Arrivals tell how claims came into the cache.
type Arrivals struct {
	// Streamed reports whether the version of a claim came by a watch event, not by a list.
	Streamed func(version string) bool
	// Creations are the unbound claims whose creation a watch has shown.
	Creations *controller.Creations
}

// NewCreations returns creations of claims, which are forgotten once the claim has a volume.
func NewCreations() *controller.Creations {
	return controller.NewCreations(func(object metav1.Object) bool {
		claim, ok := object.(*v1.PersistentVolumeClaim)
		return ok && claim.Spec.VolumeName != ""
	})
}

// NewClaims returns the informer of the driver's claims.
func NewClaims(client kubernetes.Interface, names Names) (cache.SharedIndexInformer, Arrivals) {
	all, creations := client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll), NewCreations()
	filtered, cameByWatch := controller.NewFilteredListWatch(creations.Track(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return all.List(ctx, options)
		},
		WatchFuncWithContext: all.Watch,
	}), client, func(object runtime.Object) bool {
		claim, ok := object.(*v1.PersistentVolumeClaim)
		return !ok || names.OwnsClaim(claim)
	})
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	claims := cache.NewSharedIndexInformer(filtered, &v1.PersistentVolumeClaim{}, 0, byNamespace)
	return claims, Arrivals{Streamed: cameByWatch, Creations: creations}
}

// NewVolumes returns the informer of the driver's volumes.
func NewVolumes(client kubernetes.Interface, names Names) cache.SharedIndexInformer {
	all := client.CoreV1().PersistentVolumes()
	filtered, _ := controller.NewFilteredListWatch(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return all.List(ctx, options)
		},
		WatchFuncWithContext: all.Watch,
	}, client, func(object runtime.Object) bool {
		volume, ok := object.(*v1.PersistentVolume)
		return !ok || names.OwnsVolume(volume)
	})
	return cache.NewSharedIndexInformer(filtered, &v1.PersistentVolume{}, 0, cache.Indexers{})
}

// TrimAttachment is an informer transform. It keeps the name, attacher, volume and node of
// a VolumeAttachment, for every attacher: another one can attach a volume of this driver.
func TrimAttachment(object any) (any, error) {
	attachment, ok := object.(*storagev1.VolumeAttachment)
	if !ok {
		return object, nil
	}
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: attachment.Name, UID: attachment.UID,
			ResourceVersion: attachment.ResourceVersion},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: attachment.Spec.Attacher, NodeName: attachment.Spec.NodeName,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: attachment.Spec.Source.PersistentVolumeName},
		},
	}, nil
}

// Rules return what the informers decode. Of volumes and claims of other drivers, that is
// what the handlers of deleted objects read: a deletion may free a name.
func (n Names) Rules() partial.Rules {
	volume, claim := v1.PersistentVolume{}, v1.PersistentVolumeClaim{}
	driver := "spec.persistentVolumeSource.csi.driver"
	names := append([]string{n.Driver}, n.Migrated...)
	return partial.Rules{
		"Node": controller.NodeRule(),
		"PersistentVolume": {
			Fields:  partial.Except(volume, "metadata.managedFields"),
			Foreign: partial.Only(volume, "metadata.name", "metadata.uid", "metadata.resourceVersion", "spec.claimRef", driver),
			Whole:   names, Has: partial.PathOf(volume, driver),
		},
		"PersistentVolumeClaim": {
			Fields:  partial.Except(claim, "metadata.managedFields"),
			Foreign: partial.Only(claim, "metadata.namespace", "metadata.name", "metadata.uid", "metadata.resourceVersion"),
			// the finalizer and the kinds of sources that OwnsClaim looks for
			Whole: append(names, string(finalizer.CloneSource), "PersistentVolumeClaim", "VolumeSnapshot"),
		},
	}
}
