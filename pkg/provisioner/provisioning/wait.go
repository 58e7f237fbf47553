package provisioning

import (
	"errors"
	"fmt"
	"time"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// wait reports the reason of the wait, and plans the next pass. An error leads to a retry
// with backoff.
func (c *Controller) wait(o *observation, s provision.State, reason provision.Reason) error {
	w := provision.WaitFor(s, reason, provision.Pass{
		Cause: o.cause, Unseen: o.record.object.isAwaited(), Server: c.serverOf(o),
	})
	err := o.err
	switch reason {
	case provision.LeaseEnding:
		err = errLeaseEnding
	case provision.NameInUse:
		err = fmt.Errorf("another PersistentVolume has the name %s of the claim's volume; "+
			"delete it, and the claim is provisioned", o.name)
	default:
	}
	if w.Count {
		c.countPass(o, err)
	}
	err = c.reportWait(o, w.Report, err)
	if w.Forget {
		if _, gone := c.claimOf(o.subject().key); o.gone && !gone { // the cache still has the claim, and no event may come
			return controller.ErrStaleCache
		}
		c.forget(o)
	}
	if w.Retry == provision.WithBackoff {
		return err
	}
	if delay := c.delay(o, w.Retry); delay > 0 {
		c.loop.EnqueueAfter(o.subject().key, delay)
	}
	return nil
}

// errLeaseEnding: the leader lease ends too soon for a call.
var errLeaseEnding = errors.New("the leader lease ends soon and was not renewed; the driver is not called")

// reportWait emits the event, and returns the error with the text of the event.
func (c *Controller) reportWait(o *observation, report provision.Report, err error) error {
	switch report {
	case provision.ReportFailure:
		return c.reportFailure(o, c.causeError(o))
	case provision.ReportNameConflict:
		return c.reportFailure(o, err)
	case provision.ReportUnresolved:
		return c.reportUnresolved(o, err)
	case provision.ReportLeftAlone:
		c.reportLeftAlone(o, "the claim is gone, and its user may have kept the volume")
	case provision.ReportOtherProvisioner:
		var other *provision.LeftToOther
		if errors.As(err, &other) {
			c.Reporter.Report(o.claim, controller.NormalEvent(provisioning, other.Sentence))
		}
	case provision.NoReport:
	}
	return err
}

// reportUnresolved reports that the driver has not answered a call for an unwanted volume.
func (c *Controller) reportUnresolved(o *observation, err error) error {
	c.Reporter.Report(o.claim, controller.WarningEvent(provisioningUnresolved, fmt.Sprintf(
		"The driver %s has not answered whether it created volume %s, which no claim wants any more; the request is repeated: %v",
		c.Backend.Name(), o.name, err)))
	return err
}

// causeError returns the error of the pass with the text of the event.
func (c *Controller) causeError(o *observation) error {
	if o.cause == provision.VolumeDiscarded {
		return o.err
	}
	return c.userError(o, o.err, false)
}

// forget removes the record of a finished claim.
func (c *Controller) forget(o *observation) {
	c.memory.forget(o.claim.UID, o.name)
	if o.gone {
		c.Reporter.Forget(o.claim.UID)
	}
}

// delay returns the time until the retry, 0 for none.
func (c *Controller) delay(o *observation, retry provision.Retry) time.Duration {
	switch retry {
	case provision.Soon:
		return c.Backoff.Initial
	case provision.Late:
		return c.Backoff.Max
	case provision.OnceFailureCounts:
		return max(c.Timeouts.RepeatedFailure-time.Since(o.record.request.answers.failedAt), c.Backoff.Initial)
	case provision.OnceRecordIsMissed:
		return c.Timeouts.Unseen
	case provision.OnceWriteEnds:
		return max(c.Timeouts.OpenWrite-time.Since(o.record.object.writtenAt), c.Backoff.Initial)
	case provision.OnEvent, provision.WithBackoff:
	}
	return 0
}
