package sandbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// kubeletWorkers is the number of pods that end at a time.
const kubeletWorkers = 16

// EndPods acts as the kubelets of all nodes for pods that end, until ctx does: a pod is removed once its grace is over.
// The pods of nodes for which isDead is true stay; isDead may be nil. A pod without a node needs no kubelet: the API
// server removes it at once. For kubelets that start pods, too, see test/cloudmock.
func EndPods(ctx context.Context, client kubernetes.Interface, isDead func(node string) bool) error {
	e := &podEnder{client: client, isDead: isDead,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	e.pods = informer.GetIndexer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    e.see,
		UpdateFunc: func(_, pod any) { e.see(pod) },
	}); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	factory.StartWithContext(ctx)
	var workers sync.WaitGroup
	for range kubeletWorkers {
		workers.Go(func() {
			for e.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	e.queue.ShutDown()
	workers.Wait()
	factory.Shutdown()
	return nil
}

// podEnder ends pods.
type podEnder struct {
	client kubernetes.Interface
	isDead func(string) bool
	pods   cache.Indexer
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// see adds a pod that ends to the queue.
func (e *podEnder) see(object any) {
	if pod := object.(*v1.Pod); e.ends(pod) {
		e.queue.AddAfter(cache.MetaObjectToName(pod), time.Until(pod.DeletionTimestamp.Time))
	}
}

// ends reports whether a kubelet has to end the pod.
func (e *podEnder) ends(pod *v1.Pod) bool {
	return pod.DeletionTimestamp != nil && pod.Spec.NodeName != "" && (e.isDead == nil || !e.isDead(pod.Spec.NodeName))
}

func (e *podEnder) next(ctx context.Context) bool {
	name, shut := e.queue.Get()
	if shut {
		return false
	}
	defer e.queue.Done(name)
	if err := e.end(ctx, name); err != nil && ctx.Err() == nil {
		e.queue.AddRateLimited(name)
		return true
	}
	e.queue.Forget(name)
	return true
}

// end removes the pod, if its grace is over. A pod whose grace was shortened is in the queue again.
func (e *podEnder) end(ctx context.Context, name cache.ObjectName) error {
	object, exists, err := e.pods.GetByKey(name.String())
	if err != nil || !exists {
		return err
	}
	pod, _ := object.(*v1.Pod)
	if !e.ends(pod) || time.Now().Before(pod.DeletionTimestamp.Time) {
		return nil
	}
	err = e.client.CoreV1().Pods(name.Namespace).Delete(ctx, name.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // another pod has the name
		return nil
	}
	return err
}
