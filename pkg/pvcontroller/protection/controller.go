package protection

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/waiting"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
	"github.com/exeunt-io/exeunt/pkg/protection"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
)

// Config holds the dependencies of the controller.
type Config struct {
	Client   kubernetes.Interface
	Caches   *pvcache.Caches
	Versions *controller.Versions
	Reporter *controller.Reporter
	// Waiting tracks the claims whose deletion waits; nil for no events and metrics.
	Waiting *waiting.Tracker
}

// Controller adds and removes the finalizer pvc-protection.
type Controller struct {
	client   kubernetes.Interface
	caches   *pvcache.Caches
	versions *controller.Versions
	writer   *controller.Writer
	reporter *controller.Reporter
	pods     *livePods
	waiting  *waiting.Tracker
	loop     *controller.Loop
	// requests has an entry for each request in progress, and bounds their number; nil for
	// no bound.
	requests chan struct{}
}

// New returns the controller.
func New(config Config) *Controller {
	c := &Controller{
		client:   config.Client,
		caches:   config.Caches,
		versions: config.Versions,
		writer:   controller.NewWriter(config.Client, config.Versions),
		reporter: config.Reporter,
		waiting:  config.Waiting,
	}
	c.pods = newLivePods(c.listPods(config.Client))
	c.loop = controller.NewLoop("pvcprotection", controller.Backoff{Initial: 20 * time.Millisecond, Max: time.Minute},
		c.Reconcile)
	return c
}

// Watch registers the event handlers, and returns once every claim that may need a
// change of its finalizer is enqueued.
func (c *Controller) Watch(ctx context.Context) error {
	return controller.RegisterHandlers(ctx,
		controller.EventHandler{Informer: c.caches.Claims, Handler: controller.OnChange(c.claimChanged, c.claimGone)},
		controller.EventHandler{Informer: c.caches.Pods, Handler: controller.OnChange(c.podChanged, c.podGone)},
	)
}

// claimsPerRequest is how many claims are reconciled for each request in progress: all
// claims of a namespace that wait for a list of its pods share one list.
const claimsPerRequest = 8

// Run reconciles claims until the context ends, and sends so many requests at once. Watch
// has succeeded.
func (c *Controller) Run(ctx context.Context, requests int) {
	c.requests = make(chan struct{}, requests)
	c.loop.Run(ctx, requests*claimsPerRequest)
}

// begin waits until a request may be sent, and returns the function that ends it.
func (c *Controller) begin(ctx context.Context) (end func(), err error) {
	if c.requests == nil {
		return func() {}, nil
	}
	select {
	case c.requests <- struct{}{}:
		return func() { <-c.requests }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Loops returns the loops, for a simulation that steps them.
func (c *Controller) Loops() []*controller.Loop { return []*controller.Loop{c.loop} }

// Enqueue adds the claim to the queue.
func (c *Controller) Enqueue(claim string) {
	c.loop.Enqueue(claim)
}

// Reconcile adds or removes the finalizer of one claim.
func (c *Controller) Reconcile(ctx context.Context, key string) error {
	claim := c.caches.Claim(key)
	switch {
	case claim == nil:
		return nil
	case !c.versions.IsFresh(claim):
		return c.versions.AwaitClaim(ctx, c.client, claim)
	}
	state := protection.ClaimState{
		Deleting:  claim.DeletionTimestamp != nil,
		Protected: finalizer.Has(claim.Finalizers, finalizer.ClaimProtection),
		Used:      usedByAny(c.caches.PodsOf(key), claim),
	}
	c.trackWait(claim, state)
	action := protection.DecideClaim(state)
	if action == protection.ConfirmClaim {
		pods, err := c.pods.List(ctx, claim.Namespace)
		if err != nil {
			return err
		}
		state.Used, state.Confirmed = usedByAny(pods, claim), true
		if state.Used { // the pod is not in the cache, so its deletion may cause no event
			return controller.ErrStaleCache
		}
		action = protection.DecideClaim(state)
	}
	return c.execute(ctx, claim, action)
}

func (c *Controller) execute(ctx context.Context, claim *v1.PersistentVolumeClaim,
	action protection.ClaimAction) error {
	names, write := []finalizer.Name{finalizer.ClaimProtection}, ""
	var change finalizer.Change
	switch action {
	case protection.ProtectClaim:
		change.Add, write = names, "Adding the finalizer "+string(finalizer.ClaimProtection)
	case protection.UnprotectClaim:
		change.Remove, write = names, "Removing the finalizer "+string(finalizer.ClaimProtection)
		klog.FromContext(ctx).V(2).Info("No pod uses the claim, removing pvc-protection")
	case protection.KeepClaim, protection.ConfirmClaim:
		return nil
	}
	end, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	if action == protection.UnprotectClaim && usedByAny(c.caches.PodsOf(controller.Key(claim)), claim) {
		return controller.ErrStaleCache // a pod was created while this write waited for its turn
	}
	_, err = c.writer.PatchClaim(ctx, claim, finalizer.Edit(patch.For(claim).TestDeletion(claim), claim, change))
	return c.reporter.ReportRefusal(claim, write, err)
}

func usedByAny(pods []*v1.Pod, claim *v1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return protection.Uses(pod, claim) })
}

// claimChanged enqueues claims that are being deleted or lack the finalizer.
func (c *Controller) claimChanged(_, claim *v1.PersistentVolumeClaim) {
	if claim.DeletionTimestamp != nil || !finalizer.Has(claim.Finalizers, finalizer.ClaimProtection) {
		c.loop.Enqueue(controller.Key(claim))
	}
}

func (c *Controller) claimGone(claim *v1.PersistentVolumeClaim) {
	c.waiting.Forget(claim.UID)
}

// podChanged enqueues the claims of a pod whose grace period changed: a pod that was shut
// down no longer uses its claims, though its object still exists.
func (c *Controller) podChanged(old, pod *v1.Pod) {
	if old != nil && !ptr.Equal(old.DeletionGracePeriodSeconds, pod.DeletionGracePeriodSeconds) {
		c.podGone(pod)
	}
}

func (c *Controller) podGone(pod *v1.Pod) {
	for _, key := range pvcache.PodClaimKeys(pod) {
		if claim := c.caches.Claim(key); claim != nil && claim.DeletionTimestamp != nil {
			c.loop.Enqueue(key)
		}
	}
}

// trackWait has users told if the deletion of the claim waits for pods.
func (c *Controller) trackWait(claim *v1.PersistentVolumeClaim, state protection.ClaimState) {
	if !state.Deleting || !state.Protected || !state.Used {
		c.waiting.Clear(claim.UID, finalizer.ClaimProtection)
		return
	}
	c.waiting.Wait(waiting.Deletion{
		Object: waiting.ClaimReference(claim), Finalizer: finalizer.ClaimProtection,
		Since: waiting.ClaimSince(claim), Reason: blocker.PodUsesClaim,
		Blocker: func() (blocker.Blocker, bool) {
			return podUsesClaim(c.caches.PodsOf(controller.Key(claim)), claim)
		},
		Exists: func() bool { return c.caches.HasClaim(claim) },
	})
}

// podUsesClaim returns the pods that the deletion of the claim waits for, or false if no pod
// uses the claim.
func podUsesClaim(pods []*v1.Pod, claim *v1.PersistentVolumeClaim) (blocker.Blocker, bool) {
	users := slices.DeleteFunc(slices.Clone(pods), func(pod *v1.Pod) bool { return !protection.Uses(pod, claim) })
	if len(users) == 0 {
		return blocker.Blocker{}, false
	}
	first := slices.MinFunc(users, func(a, b *v1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	holder := "Pod " + controller.Key(first)
	next := fmt.Sprintf("kubectl delete pod %s -n %s", first.Name, first.Namespace)
	switch {
	case first.DeletionTimestamp != nil:
		holder += ", which is being deleted"
		next = fmt.Sprintf("kubectl exeunt why pod/%s -n %s", first.Name, first.Namespace)
	case first.Status.Phase == v1.PodSucceeded || first.Status.Phase == v1.PodFailed:
		holder += ", which has finished and still exists"
	default:
		next = "once the pod is no longer needed: " + next
	}
	if others := len(users) - 1; others > 0 {
		holder += fmt.Sprintf(", and %d more", others)
	}
	return blocker.Blocker{
		Object:    blocker.Object{Kind: "Pod", Namespace: first.Namespace, Name: first.Name, UID: string(first.UID)},
		Finalizer: string(finalizer.ClaimProtection), Reason: blocker.PodUsesClaim, Holder: holder, Verdict: blocker.Waiting,
		Next: next,
	}, true
}
