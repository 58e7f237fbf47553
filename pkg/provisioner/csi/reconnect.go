package csi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
)

// Changed is the error for a driver that reports another identity, or other capabilities,
// after a lost connection. Everything derived from the former report may be wrong.
type Changed struct {
	// Driver is the former name, Differences the list of changes.
	Driver      string
	Differences []string
}

// Error returns the message.
func (c *Changed) Error() string {
	return fmt.Sprintf("driver %s was restarted and has changed (%s); ending, so that the next start uses the changed driver", c.Driver, strings.Join(c.Differences, "; "))
}

// connectionLost handles a lost connection. It returns true so that gRPC connects again.
func (d *Driver) connectionLost(context.Context) bool {
	d.losses.Add(1)
	select {
	case d.lost <- struct{}{}:
	default: // an earlier loss is not handled yet
	}
	return true
}

// onceKnown is the option of calls that only the driver of the first connection may answer. gRPC asks
// for it once it has chosen the connection of the call: after a lost connection, another driver
// or one that is not ready may say that a volume does not exist.
func (d *Driver) onceKnown() grpc.CallOption {
	return grpc.PerRPCCredentials(&knownDriver{driver: d})
}

// knownDriver refuses a call while the driver is not known. It has no credentials.
type knownDriver struct {
	driver *Driver
	// passed: the call was not refused, and may have been sent.
	passed atomic.Bool
}

// GetRequestMetadata returns the error of a refused call.
func (k *knownDriver) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if known := k.driver.known.Load(); known >= 0 && known != k.driver.losses.Load() {
		return nil, status.Errorf(codes.Unavailable,
			"the connection to driver %s was lost, and the driver has not reported its name and capabilities since",
			k.driver.Name())
	}
	k.passed.Store(true)
	return nil, nil
}

// NotSent is the error of a call that no driver has received. It has the code of the gRPC error.
type NotSent struct{ err error }

// Error returns the message of the gRPC error.
func (n *NotSent) Error() string { return n.err.Error() }

// Unwrap returns the gRPC error.
func (n *NotSent) Unwrap() error { return n.err }

// orNotSent returns the error, as [NotSent] if gRPC gave the call up before it asked for the option.
func (k *knownDriver) orNotSent(err error) error {
	if err == nil || k.passed.Load() {
		return err
	}
	return &NotSent{err}
}

// RequireTransportSecurity returns false: drivers are reached over unix sockets.
func (*knownDriver) RequireTransportSecurity() bool { return false }

// keepConnected connects again right after a lost connection, until the context ends: gRPC
// alone would wait for the next call.
func (d *Driver) keepConnected(ctx context.Context) {
	for state := d.connection.GetState(); state != connectivity.Shutdown; state = d.connection.GetState() {
		if state == connectivity.Idle {
			d.connection.Connect()
		}
		if !d.connection.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// The pause before the next call of a driver that failed to answer and may be starting.
const minPause, maxPause = time.Second, 30 * time.Second

// reportChange reads the driver's info after every lost connection and reports the first
// change. It ends then, or with the context.
func (d *Driver) reportChange(ctx context.Context, report func(error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.lost:
		}
		if changed := d.awaitInfo(ctx); changed != nil {
			report(changed)
			return
		}
	}
}

// awaitInfo asks until the driver answers, and returns nil if nothing changed.
func (d *Driver) awaitInfo(ctx context.Context) *Changed {
	logger := klog.FromContext(ctx)
	for pause := minPause; d.awaitConnection(ctx); pause = min(2*pause, maxPause) {
		losses := d.losses.Load()
		changed, err := d.changes(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && changed == nil:
			d.known.Store(losses)
			logger.Info("The connection to the CSI driver was lost and is back; the driver has not changed", "driver", d.Name())
			return nil
		case err == nil:
			return changed
		}
		logger.Error(err, "The connection to the CSI driver was lost and is back, but the driver does not report its name and capabilities; asking again", "driver", d.Name(), "pause", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// awaitConnection waits for a connection, and returns false if the context ends first or
// the driver was closed.
func (d *Driver) awaitConnection(ctx context.Context) bool {
	for state := d.connection.GetState(); state != connectivity.Ready; state = d.connection.GetState() {
		if state == connectivity.Shutdown || !d.connection.WaitForStateChange(ctx, state) {
			return false
		}
	}
	return true
}

// changes reads the driver's info and returns the changes, nil for none.
func (d *Driver) changes(ctx context.Context) (*Changed, error) {
	now, err := d.readInfo(ctx, func(string) {})
	if err != nil {
		return nil, err
	}
	differences := now.differences(d.info)
	if before := d.nodeTopology.Load(); before != nil && len(differences) == 0 {
		reported, err := d.readNodeTopology(ctx)
		if err != nil {
			return nil, err
		}
		if !maps.Equal(*before, reported) {
			differences = append(differences, fmt.Sprintf("its node is at %v, not at %v", reported, *before))
		}
	}
	if len(differences) == 0 {
		return nil, nil
	}
	return &Changed{Driver: d.Name(), Differences: differences}, nil
}

// differences lists the changes since before.
func (i info) differences(before info) []string {
	var all []string
	if i.name != before.name {
		all = append(all, "it is called "+i.name)
	}
	return append(all, append(capabilityChanges(before.plugin, i.plugin),
		capabilityChanges(before.controller, i.controller)...)...)
}

// capabilityChanges lists added and removed capabilities.
func capabilityChanges[C interface {
	comparable
	fmt.Stringer
}](before, now map[C]bool) []string {
	var all []string
	for capability := range now {
		if !before[capability] {
			all = append(all, "it has "+capability.String())
		}
	}
	for capability := range before {
		if !now[capability] {
			all = append(all, "it has no "+capability.String())
		}
	}
	slices.Sort(all)
	return all
}
