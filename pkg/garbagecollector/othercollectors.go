package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

const (
	testLeasePrefix = "garbage-collector-canary-"
	// testLeaseLabel is the label by which a later process finds the test Leases of a process that was killed.
	testLeaseLabel = "exeunt.io/garbage-collector-canary"
	// testTime is how long a test Lease exists, and testPoll the time between two reads of it.
	testTime, testPoll = 10 * time.Second, time.Second
	// testLeaseRecheck is when a test Lease is judged as any object, if it still exists: its deletion failed.
	testLeaseRecheck = 2 * testTime
	// deletionTimeout bounds the deletion of a test Lease, also after the end of the process was requested.
	deletionTimeout = 2 * time.Second
	// soonCheck is the time until the next check after the first one, and while another collector is at
	// work; laterCheck that between others.
	soonCheck, laterCheck = time.Minute, 10 * time.Minute
)

// otherCollectors looks for other garbage collectors.
type otherCollectors struct {
	// Detection is nil if nobody looks for them.
	*Detection
	clock    clock.Clock
	recorder record.EventRecorder

	// The mutex guards the fields below.
	mu sync.Mutex
	// testLease is the name of the test Lease that exists now, "" for none.
	testLease string
	// found: the last check that did not fail found another garbage collector; checkFailed: the last check failed.
	found, checkFailed bool
}

func newOtherCollectors(config *Config) *otherCollectors {
	return &otherCollectors{Detection: config.Detection, clock: config.Clock, recorder: config.Recorder}
}

// detect looks for other garbage collectors until the context ends. A check that fails, as one that an admission
// webhook refuses or for which a right is missing, is repeated with backoff.
func (o *otherCollectors) detect(ctx context.Context) {
	if o.Detection == nil {
		return
	}
	left, failures := true, 0
	for check := 0; ctx.Err() == nil; check++ {
		err := o.check(ctx, left)
		if ctx.Err() != nil {
			return
		}
		left, failures = err != nil, failures+1
		if err == nil {
			failures = 0
		}
		pause := untilNextCheck(check, failures, o.hasFound())
		if err != nil {
			klog.FromContext(ctx).Error(err, "Other garbage collectors cannot be detected now; "+
				"--detect-other-collectors=false ends the attempts", "nextAttempt", pause)
		}
		o.noteCheck(err)
		select {
		case <-ctx.Done():
		case <-o.clock.After(pause):
		}
	}
}

// untilNextCheck returns the time between a check and the next one. The first check has the number 0; failures are
// the checks that failed since the last one that did not.
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
func (o *otherCollectors) noteCheck(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.checkFailed = err != nil
}

// hasCheckFailed reports whether the last check for other garbage collectors failed.
func (o *otherCollectors) hasCheckFailed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.checkFailed
}

// deleteOldTestLeases deletes test Leases that a killed process left.
func (o *otherCollectors) deleteOldTestLeases(ctx context.Context) error {
	old, err := o.Client.List(ctx, metav1.ListOptions{LabelSelector: testLeaseLabel})
	if err != nil {
		return fmt.Errorf("list test Leases: %w", err)
	}
	var errs []error
	for i := range old.Items {
		errs = append(errs, o.deleteTestLease(ctx, &old.Items[i]))
	}
	return errors.Join(errs...)
}

// check finds out whether another garbage collector deletes a test Lease, and reports it. Test Leases may be left:
// those are deleted first, so that they do not become many.
func (o *otherCollectors) check(ctx context.Context, left bool) error {
	if left {
		if err := o.deleteOldTestLeases(ctx); err != nil {
			return err
		}
	}
	lease := newTestLease()
	o.keep(lease.Name)
	defer o.keep("")
	created, err := o.Client.Create(ctx, lease, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create test Lease: %w", err)
	}
	found, err := o.awaitDeletion(ctx, created)
	if err == nil {
		o.report(ctx, found)
	}
	return errors.Join(err, o.deleteTestLease(ctx, created))
}

// newTestLease returns a Lease whose owner never existed.
func newTestLease() *coordinationv1.Lease {
	name := testLeasePrefix + rand.String(10)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{testLeaseLabel: ""},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: uuid.NewUUID()}},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(
			"garbage-collector finds out whether another garbage collector deletes this Lease")},
	}
}

// awaitDeletion reports whether somebody deletes the test Lease in time.
func (o *otherCollectors) awaitDeletion(ctx context.Context, lease *coordinationv1.Lease) (bool, error) {
	for end := o.clock.Now().Add(testTime); o.clock.Now().Before(end); {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-o.clock.After(testPoll):
		}
		live, err := o.Client.Get(ctx, lease.Name, metav1.GetOptions{})
		switch {
		case namesAbsent(err, leaseKind, lease.Name):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("read test Lease: %w", err)
		case live.UID != lease.UID || live.DeletionTimestamp != nil:
			return true, nil
		}
	}
	return false, nil
}

// deleteTestLease deletes a test Lease, also after the context has ended.
func (o *otherCollectors) deleteTestLease(ctx context.Context, lease *coordinationv1.Lease) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deletionTimeout)
	defer cancel()
	err := o.Client.Delete(ctx, lease.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &lease.UID}})
	if answer.NeedsRead(err) {
		_, gone := o.Client.Get(ctx, lease.Name, metav1.GetOptions{})
		if namesAbsent(gone, leaseKind, lease.Name) {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("delete test Lease: %w", err)
	}
	return nil
}

// keep has the Lease of this name, in the namespace of test Leases, left alone; no Lease for "".
func (o *otherCollectors) keep(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.testLease = name
}

// isTestLease reports whether the object is the present test Lease of this process.
func (o *otherCollectors) isTestLease(object graph.Object) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.testLease != "" && object.Name == o.testLease && object.Kind.GroupKind() == leaseKind.GroupKind()
}

// hasFound reports whether the last check found another garbage collector.
func (o *otherCollectors) hasFound() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.found
}

// report records the result of a check.
func (o *otherCollectors) report(ctx context.Context, found bool) {
	o.mu.Lock()
	before := o.found
	o.found = found
	o.mu.Unlock()
	logger := klog.FromContext(ctx)
	switch {
	case found:
		logger.Info("Another garbage collector is at work: owners may be released before their dependents are gone, " +
			"and dependents be deleted in spite of the policy Orphan")
		lease := &v1.ObjectReference{
			APIVersion: leaseKind.GroupVersion().String(), Kind: leaseKind.Kind, Namespace: o.Namespace, Name: o.LeaderLease,
		}
		o.recorder.Event(lease, v1.EventTypeWarning, blocker.OtherCollectorEvent,
			"Another garbage collector is at work in this cluster. Both are safe together, but the other one may "+
				"release owners before their dependents are gone, and delete dependents in spite of the policy Orphan. "+
				"Add -garbage-collector-controller to --controllers of kube-controller-manager")
	case before:
		logger.Info("The other garbage collector is no longer at work")
	default:
		logger.V(2).Info("No other garbage collector is at work")
	}
}
