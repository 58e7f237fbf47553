package reclaimer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/metrics"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// recyclerPod returns the pod that recycles the volume, nil if no plugin recycles it.
func (c *Controller) recyclerPod(volume *v1.PersistentVolume) *v1.Pod {
	recycler, here := c.Plugins.RecyclerFor(volume)
	if !here {
		return nil
	}
	return recycler.RecyclerPod(volume)
}

// IsScrubbed reports whether something may be removing data of the volume, its recycler pod or its plugin, or the
// data is gone and the object is to follow.
func (c *Controller) IsScrubbed(volume *v1.PersistentVolume) bool {
	done := c.memory.Get(volume.UID)
	return done.deleting || done.unchecked || c.ScrubbingPod(volume) != ""
}

// ScrubbingPod returns the key of the pod that may remove data of the volume, "" if there is none.
func (c *Controller) ScrubbingPod(volume *v1.PersistentVolume) string {
	recycler, here := c.Plugins.RecyclerFor(volume)
	if !here {
		return ""
	}
	key := recycler.RecyclerNamespace() + "/" + plugin.RecyclerName(volume)
	pod := c.Caches.Pod(key)
	if c.awaitsPod(volume, pod) || plugin.Scrubs(pod) {
		return key
	}
	return ""
}

// awaitsPod reports whether the cached recycler pod of the volume, nil for none, is not the pod that this process
// created last, or may have created.
func (c *Controller) awaitsPod(volume *v1.PersistentVolume, pod *v1.Pod) bool {
	created := c.memory.Get(volume.UID).created
	return !created.at.IsZero() && (pod == nil || pod.UID != created.pod)
}

// unseenPod is how long a recycler pod that this process created may be without an event until it is read.
const unseenPod = time.Minute

// endUnseen lets claims have a volume again whose recycler pod came and went without an event. The watch may
// be late, so the pod counts as gone only once the API server says so. Of the times at
// which a queue shows a volume again it keeps the first only.
func (c *Controller) endUnseen(ctx context.Context, volume *v1.PersistentVolume) error {
	created := c.memory.Get(volume.UID).created
	if created.at.IsZero() {
		return nil
	}
	if age := time.Since(created.at); age < unseenPod {
		c.loop.EnqueueAfter(volume.Name, unseenPod-age)
		return nil
	}
	pod, err := c.listRecycler(ctx, volume)
	if err != nil {
		return err
	}
	if plugin.Scrubs(pod) {
		c.setCreation(volume, creation{at: time.Now(), pod: pod.UID})
		c.loop.EnqueueAfter(volume.Name, unseenPod)
		return nil
	}
	c.forgetCreation(volume.Name, created.pod)
	c.wakeScrubbed(volume.Name)
	return nil
}

// forgetCreation notes that the watch shows the pod, or has shown its end. An event of an earlier pod says nothing
// about the pod that was created last.
func (c *Controller) forgetCreation(volume string, pod types.UID) {
	cached := c.Caches.Volume(volume)
	if cached == nil || c.memory.Get(cached.UID).created.at.IsZero() {
		return
	}
	c.memory.Update(cached.UID, func(p *progress) {
		if p.created.pod == pod {
			p.created = creation{}
		}
	})
}

func (c *Controller) setCreation(volume *v1.PersistentVolume, last creation) {
	c.memory.Update(volume.UID, func(p *progress) { p.created = last })
}

// wakeScrubbed has those look again who wait until nothing removes data of the volume.
func (c *Controller) wakeScrubbed(volume string) {
	for _, wake := range c.recyclerEnded {
		wake(volume)
	}
}

// readRecycler reads the pod with the name of the volume's recycler pod from the API
// server. It returns nil if there is no pod, or if the policy is not Recycle.
func (c *Controller) readRecycler(ctx context.Context, volume *v1.PersistentVolume) (*v1.Pod, error) {
	wanted := c.recyclerPod(volume)
	if wanted == nil || policyOf(volume) != storage.PolicyRecycle {
		return nil, nil
	}
	pod, _, err := answer.Get(ctx, wanted.Name, c.Client.CoreV1().Pods(wanted.Namespace).Get)
	if err != nil {
		return nil, fmt.Errorf("read recycler pod %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	return pod, nil
}

// listRecycler is readRecycler for any policy, by the right to list pods: that to read them is one of those to
// recycle, which may have been taken away since.
func (c *Controller) listRecycler(ctx context.Context, volume *v1.PersistentVolume) (*v1.Pod, error) {
	wanted := c.recyclerPod(volume)
	if wanted == nil {
		return nil, nil
	}
	named := fields.OneTermEqualSelector("metadata.name", wanted.Name).String()
	pods, err := answer.CheckedList(c.Client.CoreV1().Pods(wanted.Namespace).
		List(ctx, metav1.ListOptions{FieldSelector: named}))
	if err != nil {
		return nil, fmt.Errorf("look for recycler pod %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	for i := range pods.Items {
		if pods.Items[i].Name == wanted.Name {
			return &pods.Items[i], nil
		}
	}
	return nil, nil
}

// beginRecycling starts the measurement of the operation.
func (c *Controller) beginRecycling(volume *v1.PersistentVolume) {
	if recycler, here := c.Plugins.RecyclerFor(volume); here {
		c.Operations.Begin(volume.UID, recycler.Name(), metrics.Recycle)
	}
}

// createRecycler creates the recycler pod, whose events enqueue the volume. Without the
// right to create pods, the volume is Failed and retried.
func (c *Controller) createRecycler(ctx context.Context, o observation) error {
	c.beginRecycling(o.volume)
	pod := c.recyclerPod(o.volume)
	if pod == nil {
		return fmt.Errorf("no in-tree plugin recycles volume %s", o.volume.Name)
	}
	if err := cmp.Or(controller.CheckLeading(c.Leading), controller.CheckRead(o.read)); err != nil {
		return fmt.Errorf("volume %s is not recycled: %w", o.volume.Name, err)
	}
	before := c.memory.Get(o.volume.UID).created
	// An administrator gave a volume away right after its recycler pod was created. The watch did not show the pod yet,
	// so the next claim got the volume while the pod removed data. The creation is noted before the request.
	c.setCreation(o.volume, creation{at: time.Now()})
	created, err := c.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if answer.IsDefinite(err) {
		c.setCreation(o.volume, before)
		c.wakeScrubbed(o.volume.Name) // it may have been given away during the request
	}
	switch {
	case apierrors.IsAlreadyExists(err) && c.recyclerExists(ctx, o.volume):
		return fmt.Errorf("create recycler pod %s/%s: %w", pod.Namespace, pod.Name, controller.ErrStaleCache)
	case err != nil:
		return c.recyclingFailed(ctx, o.volume, podRefusal(err))
	}
	c.setCreation(o.volume, creation{at: time.Now(), pod: created.UID})
	if cached := c.Caches.Pod(controller.Key(created)); cached != nil { // its event may have come before
		c.forgetCreation(o.volume.Name, cached.UID)
	}
	c.loop.EnqueueAfter(o.volume.Name, unseenPod)
	klog.FromContext(ctx).V(2).Info("Recycler pod created", "pod", klog.KObj(created))
	return nil
}

// recyclerExists reports whether a read shows the recycler pod. The answer to its creation may be that of an admission
// webhook.
func (c *Controller) recyclerExists(ctx context.Context, volume *v1.PersistentVolume) bool {
	pod, err := c.readRecycler(ctx, volume)
	return pod != nil || err != nil
}

// deleteRecycler deletes a recycler pod that was created for other data or is not needed.
func (c *Controller) deleteRecycler(ctx context.Context, o observation, reason plugin.Reason) error {
	if reason == plugin.RecyclerPodForeign {
		c.Reporter.Report(o.volume,
			recyclerEvent(fmt.Sprintf("pod %s/%s has the name of the recycler pod but was created for other data; it is deleted first", o.pod.Namespace, o.pod.Name)))
	}
	return c.deletePod(ctx, o.pod)
}

// deleteRecyclersOf deletes the recycler pods of a volume that is gone, running ones too: the
// administrator may create the volume again. Pods in namespaces without recycler pods belong to
// users.
func (c *Controller) deleteRecyclersOf(ctx context.Context, name string) error {
	var errs []error
	for _, pod := range c.Caches.RecyclersOf(name) {
		if c.Plugins.RecyclesIn(pod.Namespace) && pod.DeletionTimestamp == nil {
			errs = append(errs, c.deletePod(ctx, pod))
		}
	}
	return errors.Join(errs...)
}

// finishRecycling deletes the pod first: a later recycling must not find its success.
func (c *Controller) finishRecycling(ctx context.Context, o observation) (*observation, error) {
	c.repeatPodEvents(ctx, o)
	if err := c.deletePod(ctx, o.pod); err != nil {
		return nil, err
	}
	c.memory.Update(o.volume.UID, func(p *progress) { *p = progress{failures: p.failures} })
	c.Operations.Succeeded(o.volume.UID)
	c.Reporter.ReportAlways(o.volume, recycledEvent())
	o.recycled = true
	return c.observeAgain(o), nil
}

func (c *Controller) retryRecycling(ctx context.Context, o observation) error {
	c.repeatPodEvents(ctx, o)
	if err := c.recyclingFailed(ctx, o.volume, podFailure(o.pod.Status.Message)); err != nil {
		return err
	}
	return c.deletePod(ctx, o.pod)
}

// repeatPodEvents repeats the events of the recycler pod on the volume, each once. The
// events are listed when the pod changes, as a watch of all events would cost too much.
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
		if podEvent := &list.Items[i]; !before[podEvent.UID] {
			c.Reporter.ReportAlways(o.volume, event{Type: podEvent.Type, Reason: recyclerPod,
				Message: "Recycler pod: " + podEvent.Message})
		}
	}
}

// recyclingFailed sets the phase Failed and enqueues the volume with backoff.
func (c *Controller) recyclingFailed(ctx context.Context, volume *v1.PersistentVolume, err error) error {
	klog.FromContext(ctx).Error(err, "Failed to recycle the volume, trying again")
	c.enqueueWithBackoff(volume)
	return c.setFailed(ctx, volume, recyclingFailure(err))
}

// recyclerGrace is how long a recycler pod that is not needed may go on, in seconds. It is short:
// the pod removes data.
const recyclerGrace int64 = 1

// deletePod deletes the pod with this UID.
func (c *Controller) deletePod(ctx context.Context, pod *v1.Pod) error {
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		GracePeriodSeconds: new(recyclerGrace)}
	pods := c.Client.CoreV1().Pods(pod.Namespace)
	err := controller.CheckRefusal(ctx, pods.Delete(ctx, pod.Name, options), "recycler pod", pod, pods.Get)
	if err != nil && !errors.Is(err, controller.ErrGone) {
		return fmt.Errorf("delete recycler pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
