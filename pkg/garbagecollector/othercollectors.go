package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	canaryPrefix = "garbage-collector-canary-"
	// canaryLabel is the label of canaries, by which a later process finds those of a process that was killed.
	canaryLabel = "exeunt.io/garbage-collector-canary"
	// canaryTime is how long a canary exists, and canaryPoll the time between two reads of it.
	canaryTime, canaryPoll = 10 * time.Second, time.Second
	// canaryRecheck is when a canary is judged as any object, if it still exists: its deletion failed.
	canaryRecheck = 2 * canaryTime
	// canaryDeletion bounds the deletion of a canary, also after the end of the process was requested.
	canaryDeletion = 2 * time.Second
	// soonCheck is the time until the next check after the first one, and while another collector is at
	// work; laterCheck that between others.
	soonCheck, laterCheck = time.Minute, 10 * time.Minute
)

var leaseKind = &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, Resource: "leases", Namespaced: true}

// Canaries are how the leader finds out that another garbage collector works in the same cluster: it creates
// a Lease whose owner never existed, a canary, and leaves it alone. Only another collector deletes it.
type Canaries struct {
	// Client creates and deletes the canaries.
	Client coordinationclient.LeaseInterface
	// Namespace is that of the client. LeaderLease is the name of the leader lease in this namespace: events
	// are about this Lease.
	Namespace, LeaderLease string
}

// detectOthers looks for other garbage collectors until the context ends. A check that fails, as one that an admission webhook
// refuses or for which a right is missing, is repeated with backoff.
func (c *Collector) detectOthers(ctx context.Context) {
	if c.Canaries == nil {
		return
	}
	left, failures := true, 0
	for check := 0; ctx.Err() == nil; check++ {
		err := c.checkOthers(ctx, left)
		if ctx.Err() != nil {
			return
		}
		left, failures = err != nil, failures+1
		if err == nil {
			failures = 0
		}
		pause := untilNextCheck(check, failures, c.foundOther())
		if err != nil {
			klog.FromContext(ctx).Error(err, "Other garbage collectors cannot be detected now; --detect-other-collectors=false ends the attempts", "nextAttempt", pause)
		}
		c.noteCheck(err)
		select {
		case <-ctx.Done():
		case <-c.Clock.After(pause):
		}
	}
}

// untilNextCheck returns the time between a check and the next one. The first check has the number 0; failures are the checks that failed
// since the last one that did not.
func untilNextCheck(check, failures int, found bool) time.Duration {
	switch {
	case failures > 0:
		return min(soonCheck<<min(failures-1, 10), laterCheck)
	case check == 0 || found:
		return soonCheck
	}
	return laterCheck
}

// noteCheck records whether a check failed.
func (c *Collector) noteCheck(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checkFailed = err != nil
}

// hasCheckFailed reports whether the last check for other garbage collectors failed.
func (c *Collector) hasCheckFailed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.checkFailed
}

// deleteOldCanaries deletes canaries that a killed process left.
func (c *Collector) deleteOldCanaries(ctx context.Context) error {
	old, err := c.Canaries.Client.List(ctx, metav1.ListOptions{LabelSelector: canaryLabel})
	if err != nil {
		return fmt.Errorf("list canaries: %w", err)
	}
	var errs []error
	for i := range old.Items {
		errs = append(errs, c.deleteCanary(ctx, &old.Items[i]))
	}
	return errors.Join(errs...)
}

// checkOthers finds out whether another garbage collector deletes a canary, and reports it. Canaries may be left: those are deleted
// first, so that they do not become many.
func (c *Collector) checkOthers(ctx context.Context, left bool) error {
	if left {
		if err := c.deleteOldCanaries(ctx); err != nil {
			return err
		}
	}
	canary := newCanary()
	c.keepCanary(canary.Name)
	defer c.keepCanary("")
	created, err := c.Canaries.Client.Create(ctx, canary, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create canary: %w", err)
	}
	found, err := c.awaitDeletion(ctx, created)
	if err == nil {
		c.reportOther(ctx, found)
	}
	return errors.Join(err, c.deleteCanary(ctx, created))
}

// newCanary returns a Lease whose owner never existed.
func newCanary() *coordinationv1.Lease {
	name := canaryPrefix + rand.String(10)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{canaryLabel: ""},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: uuid.NewUUID()}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("garbage-collector finds out whether another garbage collector deletes this Lease")},
	}
}

// awaitDeletion reports whether somebody deletes the canary in time.
func (c *Collector) awaitDeletion(ctx context.Context, canary *coordinationv1.Lease) (bool, error) {
	for end := c.Clock.Now().Add(canaryTime); c.Clock.Now().Before(end); {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-c.Clock.After(canaryPoll):
		}
		live, err := c.Canaries.Client.Get(ctx, canary.Name, metav1.GetOptions{})
		switch {
		case namesAbsent(err, leaseKind, canary.Name):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("read canary: %w", err)
		case live.UID != canary.UID || live.DeletionTimestamp != nil:
			return true, nil
		}
	}
	return false, nil
}

// deleteCanary deletes a canary, also after the context has ended.
func (c *Collector) deleteCanary(ctx context.Context, canary *coordinationv1.Lease) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), canaryDeletion)
	defer cancel()
	err := c.Canaries.Client.Delete(ctx, canary.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &canary.UID}})
	if apierrors.IsNotFound(err) { // or a webhook denies: a read tells
		_, gone := c.Canaries.Client.Get(ctx, canary.Name, metav1.GetOptions{})
		if namesAbsent(gone, leaseKind, canary.Name) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("delete canary: %w", err)
	}
	return nil
}

// keepCanary has the Lease of this name, in the namespace of canaries, left alone; no Lease for "".
func (c *Collector) keepCanary(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.canary = name
}

// isCanary reports whether the object is the present canary of this process.
func (c *Collector) isCanary(object graph.Object) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.canary != "" && object.Name == c.canary && object.Kind.GroupKind() == leaseKind.GroupKind()
}

// foundOther reports whether the last check found another garbage collector.
func (c *Collector) foundOther() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.other
}

// reportOther records the result of a check.
func (c *Collector) reportOther(ctx context.Context, found bool) {
	c.mu.Lock()
	before := c.other
	c.other = found
	c.mu.Unlock()
	logger := klog.FromContext(ctx)
	switch {
	case found:
		logger.Info("Another garbage collector is at work: owners may be released before their dependents are gone, and dependents be deleted in spite of the policy Orphan")
		lease := &v1.ObjectReference{APIVersion: leaseKind.GroupVersion().String(), Kind: leaseKind.Kind, Namespace: c.Canaries.Namespace, Name: c.Canaries.LeaderLease}
		c.Recorder.Event(lease, v1.EventTypeWarning, blocker.OtherCollectorEvent,
			"Another garbage collector is at work in this cluster. Both are safe together, but the other one may release owners before their dependents are gone, and delete dependents in spite of the policy Orphan. Add -garbage-collector-controller to --controllers of kube-controller-manager")
	case before:
		logger.Info("The other garbage collector is no longer at work")
	default:
		logger.V(2).Info("No other garbage collector is at work")
	}
}
