package reclaimer

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// recyclerPod is the pod that would recycle the volume, nil if it is not recycled.
func (c *Controller) recyclerPod(volume *v1.PersistentVolume) *v1.Pod {
	recycler, here := c.Plugins.RecyclerFor(volume)
	if !here {
		return nil
	}
	return recycler.RecyclerPod(volume)
}

// readRecycler reads the pod that has the name of the volume's recycler, nil if
// there is none or none is needed.
func (c *Controller) readRecycler(ctx context.Context, volume *v1.PersistentVolume) (*v1.Pod, error) {
	wanted := c.recyclerPod(volume)
	if wanted == nil || policyOf(volume) != storage.PolicyRecycle {
		return nil, nil
	}
	pod, err := c.Client.CoreV1().Pods(wanted.Namespace).Get(ctx, wanted.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read recycler pod %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	return pod, nil
}

// startRecycler creates the pod; its events have the volume looked at again. Where the
// rights for that are missing, the volume says so until they are granted.
func (c *Controller) startRecycler(ctx context.Context, o observation) error {
	volume := o.volume
	recycler, here := c.Plugins.RecyclerFor(volume)
	if !here {
		return fmt.Errorf("find plugin of volume %s: it was there a moment ago", volume.Name)
	}
	c.Operations.Begin(volume.UID, recycler.Name(), metrics.Recycle)
	if o.refusal != nil { // nobody knows which pod has the name
		return c.recyclingFailed(ctx, volume, o.refusal)
	}
	pod := recycler.RecyclerPod(volume)
	made, err := c.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create recycler pod %s/%s: %w", pod.Namespace, pod.Name, controller.ErrStaleCache)
	case err != nil:
		return c.recyclingFailed(ctx, volume, podRefusal(err))
	}
	klog.FromContext(ctx).V(2).Info("Recycler pod created", "pod", klog.KObj(made))
	return nil
}

// removeRecycler deletes a pod that is not believed, or that nobody waits for.
func (c *Controller) removeRecycler(ctx context.Context, o observation, reason plugin.Reason) error {
	if reason == plugin.RecyclerPodForeign {
		c.Reporter.Report(o.volume, recyclerEvent(fmt.Sprintf("pod %s/%s has the name and was not made for this volume's data; it is removed first", o.pod.Namespace, o.pod.Name)))
	}
	return c.deletePod(ctx, o.pod)
}

// removeRecyclersOf removes what is left of the recycling of a volume that is gone.
// A pod that still runs is left to finish, and one of a namespace in which no recycler
// pods are made is somebody else's.
func (c *Controller) removeRecyclersOf(ctx context.Context, name string) error {
	var errs []error
	for _, pod := range c.Caches.RecyclersOf(name) {
		if c.Plugins.RecyclesIn(pod.Namespace) && isFinished(pod) && pod.DeletionTimestamp == nil {
			errs = append(errs, c.deletePod(ctx, pod))
		}
	}
	return errors.Join(errs...)
}

// finishRecycling deletes the pod before anything else: its success must never be
// found again by a later recycling.
func (c *Controller) finishRecycling(ctx context.Context, o observation) (*observation, error) {
	c.repeatPodEvents(ctx, o)
	if err := c.deletePod(ctx, o.pod); err != nil {
		return nil, err
	}
	c.memory.Update(o.volume.UID, func(p *progress) { *p = progress{recycled: plugin.DataID(o.volume)} })
	c.Operations.Succeeded(o.volume.UID)
	c.Reporter.ReportAlways(o.volume, recycledEvent())
	return c.observeAgain(o), nil
}

func (c *Controller) retryRecycling(ctx context.Context, o observation) error {
	c.repeatPodEvents(ctx, o)
	if err := c.recyclingFailed(ctx, o.volume, podFailure(o.pod.Status.Message)); err != nil {
		return err
	}
	return c.deletePod(ctx, o.pod)
}

// repeatPodEvents repeats on the volume what others say of its recycler pod, each once:
// where it runs, that its image cannot be pulled. It is asked for whenever the pod
// changes, which spares a watch of all events; to fail at it is no failure.
func (c *Controller) repeatPodEvents(ctx context.Context, o observation) {
	about := fields.OneTermEqualSelector("involvedObject.uid", string(o.pod.UID)).String()
	list, err := c.Client.CoreV1().Events(o.pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: about})
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot read the events of the recycler pod", "pod", klog.KObj(o.pod), "err", err)
		return
	}
	var before map[types.UID]bool
	c.memory.Update(o.volume.UID, func(p *progress) {
		before, p.reported = p.reported, make(map[types.UID]bool, len(list.Items))
		for i := range list.Items {
			p.reported[list.Items[i].UID] = true
		}
	})
	for i := range list.Items {
		if said := &list.Items[i]; !before[said.UID] {
			c.Reporter.ReportAlways(o.volume, event{Type: said.Type, Reason: recyclerPod, Message: "Recycler pod: " + said.Message})
		}
	}
}

// recyclingFailed has the volume recycled again later.
func (c *Controller) recyclingFailed(ctx context.Context, volume *v1.PersistentVolume, err error) error {
	klog.FromContext(ctx).Error(err, "Failed to recycle the volume, trying again")
	c.enqueueWithBackoff(volume)
	return c.setFailed(ctx, volume, recyclingFailure(err))
}

// deletePod deletes this very pod.
func (c *Controller) deletePod(ctx context.Context, pod *v1.Pod) error {
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	err := c.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete recycler pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
