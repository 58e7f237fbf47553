// Package pvcache has the informers that the reconcilers of the pv-controller share, and
// their indexes.
package pvcache

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers/core"
	storageinformers "k8s.io/client-go/informers/storage"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/intern"
	"github.com/exeunt-io/exeunt/pkg/controller/partial"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Names of the indexes of the caches.
const (
	// byVolume finds claims by spec.volumeName.
	byVolume = "volume"
	// byClass finds claims without a volume by their class.
	byClass = "class"
	// byClaim finds volumes by the key of the claim in claimRef, and pods by the keys of
	// the claims that they use.
	byClaim = "claim"
	// byRecycled finds our recycler pods by the name of their volume.
	byRecycled = "recycled"
)

// Caches are the informers that the reconcilers of the pv-controller share. Objects lack what no
// reconciler reads and most objects have: managed fields, the labels of claims, the CSI source but
// for its driver, and all of a pod but a few fields. No write sends a cached object as a whole.
type Caches struct {
	Claims, Volumes, Classes, Pods cache.SharedIndexInformer
}

// InformerFactory makes informers of two groups.
type InformerFactory interface {
	Core() core.Interface
	Storage() storageinformers.Interface
}

// New adds the informers to the factory; it does not start them.
func New(factory InformerFactory) (*Caches, error) {
	return Of(&Caches{
		Claims:  factory.Core().V1().PersistentVolumeClaims().Informer(),
		Volumes: factory.Core().V1().PersistentVolumes().Informer(),
		Classes: factory.Storage().V1().StorageClasses().Informer(),
		Pods:    factory.Core().V1().Pods().Informer(),
	})
}

// Of adds the indexes and the transforms to informers that are not started yet.
func Of(c *Caches) (*Caches, error) {
	for informer, indexers := range map[cache.SharedIndexInformer]cache.Indexers{
		c.Claims:  {byVolume: controller.BucketIndex(claimVolume), byClass: waitingClass},
		c.Volumes: {byClaim: controller.BucketIndex(volumeClaim)},
		c.Pods:    {byClaim: controller.BucketIndex(podClaims), byRecycled: recycledVolume},
	} {
		if err := informer.AddIndexers(indexers); err != nil {
			return nil, fmt.Errorf("add indexes: %w", err)
		}
	}
	shared := intern.New()
	for informer, transform := range map[cache.SharedIndexInformer]cache.TransformFunc{
		c.Claims: trimmed(trimClaim, shared.Transform), c.Volumes: trimmed(trimVolume, shared.Transform),
		c.Classes: controller.StripManagedFields, c.Pods: trimPod,
	} {
		if err := informer.SetTransform(transform); err != nil {
			return nil, fmt.Errorf("set transform: %w", err)
		}
	}
	return c, nil
}

// Claim returns the claim with the key namespace/name, nil if there is none.
func (c *Caches) Claim(key string) *v1.PersistentVolumeClaim {
	return controller.Lookup[*v1.PersistentVolumeClaim](c.Claims, key)
}

// Volume returns the volume, nil if there is none.
func (c *Caches) Volume(name string) *v1.PersistentVolume {
	return controller.Lookup[*v1.PersistentVolume](c.Volumes, name)
}

// HasVolume reports whether the cache has the volume, by its UID.
func (c *Caches) HasVolume(volume *v1.PersistentVolume) bool {
	now := c.Volume(volume.Name)
	return now != nil && now.UID == volume.UID
}

// HasClaim reports whether the cache has the claim, by its UID.
func (c *Caches) HasClaim(claim *v1.PersistentVolumeClaim) bool {
	now := c.Claim(controller.Key(claim))
	return now != nil && now.UID == claim.UID
}

// Class returns the storage class, nil if there is none.
func (c *Caches) Class(name string) *storagev1.StorageClass {
	return controller.Lookup[*storagev1.StorageClass](c.Classes, name)
}

// AllClasses returns every storage class.
func (c *Caches) AllClasses() []*storagev1.StorageClass {
	return typed[*storagev1.StorageClass](c.Classes.GetStore().List())
}

// VolumesOf returns the volumes whose claimRef names the claim.
func (c *Caches) VolumesOf(claim string) []*v1.PersistentVolume {
	return controller.FromBucket(c.Volumes, byClaim, claim, func(volume *v1.PersistentVolume) bool {
		ref := volume.Spec.ClaimRef
		return ref != nil && controller.IsKey(claim, ref.Namespace, ref.Name)
	})
}

// ClaimsNaming returns the claims that name the volume.
func (c *Caches) ClaimsNaming(volume string) []*v1.PersistentVolumeClaim {
	return controller.FromBucket(c.Claims, byVolume, volume, func(claim *v1.PersistentVolumeClaim) bool {
		return claim.Spec.VolumeName == volume
	})
}

// OwnerOf returns the claim that was bound to the volume, nil for none, if the volume has no claimRef.
func (c *Caches) OwnerOf(volume *v1.PersistentVolume) *v1.PersistentVolumeClaim {
	if volume == nil || volume.Spec.ClaimRef != nil {
		return nil
	}
	return binding.Owner(volume, c.ClaimsNaming(volume.Name))
}

// ClaimsWaitingFor returns the claims of the class ("" for none) that name no volume.
func (c *Caches) ClaimsWaitingFor(class string) []*v1.PersistentVolumeClaim {
	return indexed[*v1.PersistentVolumeClaim](c.Claims, byClass, class)
}

// PodsOf returns the pods that use the claim.
func (c *Caches) PodsOf(claim string) []*v1.Pod {
	return controller.FromBucket(c.Pods, byClaim, claim, func(pod *v1.Pod) bool {
		return slices.Contains(PodClaimKeys(pod), claim)
	})
}

// Pod returns the pod with the key namespace/name, nil if there is none.
func (c *Caches) Pod(key string) *v1.Pod {
	return controller.Lookup[*v1.Pod](c.Pods, key)
}

// RecyclersOf returns our recycler pods of the volume.
func (c *Caches) RecyclersOf(volume string) []*v1.Pod {
	return indexed[*v1.Pod](c.Pods, byRecycled, volume)
}

// HasRecyclers reports whether there is a recycler pod of ours.
func (c *Caches) HasRecyclers() bool {
	return len(c.Pods.GetIndexer().ListIndexFuncValues(byRecycled)) > 0
}

// PodClaimKeys returns the keys of the claims that a pod uses.
func PodClaimKeys(pod *v1.Pod) []string {
	keys := protection.ClaimNames(pod)
	for i, name := range keys {
		keys[i] = pod.Namespace + "/" + name
	}
	return keys
}

func indexed[T any](informer cache.SharedIndexInformer, index, value string) []T {
	objects, err := informer.GetIndexer().ByIndex(index, value)
	if err != nil {
		return nil
	}
	return typed[T](objects)
}

func typed[T any](objects []any) []T {
	result := make([]T, 0, len(objects))
	for _, object := range objects {
		result = append(result, object.(T))
	}
	return result
}

func claimVolume(object any) []string {
	claim, ok := object.(*v1.PersistentVolumeClaim)
	if !ok || claim.Spec.VolumeName == "" {
		return nil
	}
	return []string{claim.Spec.VolumeName}
}

func waitingClass(object any) ([]string, error) {
	claim, ok := object.(*v1.PersistentVolumeClaim)
	if !ok || claim.Spec.VolumeName != "" {
		return nil, nil
	}
	return []string{storage.ClaimClass(claim)}, nil
}

func volumeClaim(object any) []string {
	volume, ok := object.(*v1.PersistentVolume)
	if !ok || volume.Spec.ClaimRef == nil {
		return nil
	}
	return []string{controller.ClaimKey(volume)}
}

func podClaims(object any) []string {
	pod, ok := object.(*v1.Pod)
	if !ok {
		return nil
	}
	return PodClaimKeys(pod)
}

func recycledVolume(object any) ([]string, error) {
	pod, ok := object.(*v1.Pod)
	if !ok || plugin.RecycledData(pod) == "" {
		return nil, nil
	}
	if volume, recycler := strings.CutPrefix(pod.Name, plugin.RecyclerPrefix); recycler {
		return []string{volume}, nil
	}
	return nil, nil
}

// Rules return what the informers decode: what their transforms keep.
func Rules() partial.Rules {
	rules := PodRules()
	volume := []string{"metadata.managedFields"}
	for _, field := range []string{
		"volumeHandle", "readOnly", "fsType", "volumeAttributes", "controllerPublishSecretRef", "nodeStageSecretRef",
		"nodePublishSecretRef", "controllerExpandSecretRef", "nodeExpandSecretRef",
	} {
		volume = append(volume, "spec.persistentVolumeSource.csi."+field)
	}
	rules["PersistentVolume"] = partial.Rule{Fields: partial.Except(v1.PersistentVolume{}, volume...)}
	rules["PersistentVolumeClaim"] = partial.Rule{Fields: partial.Except(v1.PersistentVolumeClaim{},
		"metadata.managedFields", "metadata.labels")}
	return rules
}

// PodRules return what is decoded of pods, cached or listed live. The template of an
// ephemeral volume says no more than that the volume is ephemeral.
func PodRules() partial.Rules {
	return partial.Rules{"Pod": {Fields: partial.Only(v1.Pod{},
		"metadata.namespace", "metadata.name", "metadata.uid", "metadata.resourceVersion", "metadata.annotations",
		"metadata.deletionTimestamp", "metadata.deletionGracePeriodSeconds", "spec.nodeName", "status.phase",
		"spec.volumes.name",
		"spec.volumes.volumeSource.persistentVolumeClaim",
		"spec.volumes.volumeSource.ephemeral.volumeClaimTemplate.metadata.name",
	)}}
}

// trimmed returns an informer transform that trims objects of one type before the next transform.
func trimmed[T any](trim func(T), next cache.TransformFunc) cache.TransformFunc {
	return func(object any) (any, error) {
		if typed, ok := object.(T); ok {
			trim(typed)
		}
		return next(object)
	}
}

// trimVolume leaves the driver of the CSI source. The handles and attributes of many drivers are long, and
// each volume has its own.
func trimVolume(volume *v1.PersistentVolume) {
	if source := volume.Spec.CSI; source != nil {
		volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: source.Driver}
	}
}

// trimClaim removes the labels, which differ between applications.
func trimClaim(claim *v1.PersistentVolumeClaim) { claim.Labels = nil }

// trimPod is an informer transform that keeps the claims of a pod, its node and phase,
// and the annotation of our recycler pods.
func trimPod(object any) (any, error) {
	pod, ok := object.(*v1.Pod)
	if !ok {
		return object, nil
	}
	trimmed := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			DeletionTimestamp: pod.DeletionTimestamp, DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec:   v1.PodSpec{NodeName: pod.Spec.NodeName, Volumes: claimVolumes(pod)},
		Status: v1.PodStatus{Phase: pod.Status.Phase},
	}
	if volume, recycler := pod.Annotations[plugin.RecyclerAnnotation]; recycler {
		trimmed.Annotations = map[string]string{plugin.RecyclerAnnotation: volume}
	}
	return trimmed, nil
}

func claimVolumes(pod *v1.Pod) []v1.Volume {
	var volumes []v1.Volume
	for _, volume := range pod.Spec.Volumes {
		switch {
		case volume.PersistentVolumeClaim != nil:
			volumes = append(volumes, volume)
		case volume.Ephemeral != nil: // the claim is named after the pod and this volume
			volumes = append(volumes, v1.Volume{Name: volume.Name,
				VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{}}})
		}
	}
	return volumes
}
