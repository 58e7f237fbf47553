package upstream

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/model/process"
)

// protection are the loops persistentvolume-protection-controller and
// persistentvolumeclaim-protection-controller. They remember nothing.
type protection struct {
	client kubernetes.Interface

	volumeInformer, claimInformer, podInformer cache.SharedIndexInformer

	volumeLoop, claimLoop *controller.Loop
}

func newProtection(env *process.Env) *protection {
	p := &protection{
		client:         env.Client,
		volumeInformer: env.Informers["persistentvolumes"],
		claimInformer:  env.Informers["persistentvolumeclaims"],
		podInformer:    env.Informers["pods"],
	}
	p.volumeLoop = controller.NewLoop("pvprotection", backoff, p.reconcileVolume)
	p.claimLoop = controller.NewLoop("pvcprotection", backoff, p.reconcileClaim)
	return p
}

func (p *protection) handlers() []controller.EventHandler {
	handlers := []controller.EventHandler{
		{Informer: p.volumeInformer, Handler: controller.OnChange(func(_, volume *v1.PersistentVolume) {
			if needsChange(volume, finalizer.VolumeProtection) {
				p.volumeLoop.Enqueue(volume.Name)
			}
		}, func(*v1.PersistentVolume) {})},
		{Informer: p.claimInformer, Handler: controller.OnChange(func(_, claim *v1.PersistentVolumeClaim) {
			if needsChange(claim, finalizer.ClaimProtection) {
				p.claimLoop.Enqueue(controller.Key(claim))
			}
		}, func(*v1.PersistentVolumeClaim) {})},
	}
	if p.podInformer != nil {
		handlers = append(handlers, controller.EventHandler{Informer: p.podInformer,
			Handler: controller.OnChange(func(_, pod *v1.Pod) {
				if pod.Spec.NodeName == "" || isFinished(pod) {
					p.enqueueClaims(pod)
				}
			}, p.enqueueClaims)})
	}
	return handlers
}

// needsChange reports whether the finalizer is missing, or may have to be removed.
func needsChange(object metav1.Object, name finalizer.Name) bool {
	return finalizer.Has(object.GetFinalizers(), name) == (object.GetDeletionTimestamp() != nil)
}

func isFinished(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

func (p *protection) enqueueClaims(pod *v1.Pod) {
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			p.claimLoop.Enqueue(pod.Namespace + "/" + volume.PersistentVolumeClaim.ClaimName)
		}
	}
}

// reconcileVolume removes pv-protection from a volume that is being deleted and not Bound,
// by the cache, and adds it to any other.
func (p *protection) reconcileVolume(ctx context.Context, name string) error {
	volume := controller.Lookup[*v1.PersistentVolume](p.volumeInformer, name)
	if volume == nil || !needsChange(volume, finalizer.VolumeProtection) {
		return nil
	}
	if volume.DeletionTimestamp != nil && volume.Status.Phase == v1.VolumeBound {
		p.volumeLoop.EnqueueAfter(name, protectionResync)
		return nil
	}
	changed := volume.DeepCopy()
	changed.Finalizers = toggled(volume, finalizer.VolumeProtection)
	if _, err := p.client.CoreV1().PersistentVolumes().Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("protect volume %s: %w", name, err)
	}
	return nil
}

// toggled returns the finalizers of the object after the change that it needs.
func toggled(object metav1.Object, name finalizer.Name) []string {
	if object.GetDeletionTimestamp() != nil {
		return finalizer.Without(object.GetFinalizers(), name)
	}
	return finalizer.With(object.GetFinalizers(), name)
}

// reconcileClaim removes pvc-protection from a claim that is being deleted and that no
// scheduled pod names, by the cache and then by a live list, and adds it to any other.
func (p *protection) reconcileClaim(ctx context.Context, key string) error {
	claim := controller.Lookup[*v1.PersistentVolumeClaim](p.claimInformer, key)
	if claim == nil || !needsChange(claim, finalizer.ClaimProtection) {
		return nil
	}
	if claim.DeletionTimestamp != nil {
		used, err := p.isUsed(ctx, claim)
		if err != nil {
			return err
		}
		if used {
			p.claimLoop.EnqueueAfter(key, protectionResync)
			return nil
		}
	}
	changed := claim.DeepCopy()
	changed.Finalizers = toggled(claim, finalizer.ClaimProtection)
	if _, err := p.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(
		ctx, changed, metav1.UpdateOptions{},
	); err != nil {
		return fmt.Errorf("protect claim %s: %w", key, err)
	}
	return nil
}

func (p *protection) isUsed(ctx context.Context, claim *v1.PersistentVolumeClaim) (bool, error) {
	names := func(pod *v1.Pod) bool { return usesClaim(pod, claim) }
	if slices.ContainsFunc(list[*v1.Pod](p.podInformer), names) {
		return true, nil
	}
	pods, err := p.client.CoreV1().Pods(claim.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("list pods of namespace %s: %w", claim.Namespace, err)
	}
	return slices.ContainsFunc(pods.Items, func(pod v1.Pod) bool { return names(&pod) }), nil
}

// usesClaim reports whether a scheduled pod names the claim; a finished pod counts too.
func usesClaim(pod *v1.Pod, claim *v1.PersistentVolumeClaim) bool {
	return pod.Namespace == claim.Namespace && pod.Spec.NodeName != "" &&
		slices.ContainsFunc(pod.Spec.Volumes, func(volume v1.Volume) bool {
			return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim.Name
		})
}
