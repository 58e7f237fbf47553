package csi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/connectivity"
	"k8s.io/klog/v2"
)

// Changed is the error that the driver which answers, after the connection was lost, is
// not what it was: what rests on what it said before is wrong by now.
type Changed struct {
	// Driver is the name that it had, Differences what is different now.
	Driver      string
	Differences []string
}

// Error is a sentence.
func (c *Changed) Error() string {
	return fmt.Sprintf("driver %s was started again and is another one now (%s); ending, to begin anew with what it is", c.Driver, strings.Join(c.Differences, "; "))
}

// lose is called when the connection was lost, before it is made again. Calls go on.
func (d *Driver) lose(context.Context) bool {
	select {
	case d.lost <- struct{}{}:
	default: // it is known already that the driver has to be asked
	}
	return true
}

// redial makes a connection that was lost again at once, and not only with the next
// call, until the context ends.
func (d *Driver) redial(ctx context.Context) {
	for state := d.connection.GetState(); state != connectivity.Shutdown; state = d.connection.GetState() {
		if state == connectivity.Idle {
			d.connection.Connect()
		}
		if !d.connection.WaitForStateChange(ctx, state) {
			return
		}
	}
}

// The time until a driver is asked again that came back and did not answer as it
// should: it may be starting.
const firstPause, longestPause = time.Second, 30 * time.Second

// compare asks the driver, each time that the connection was lost, what it is, and
// reports the first difference. It ends then, or with the context.
func (d *Driver) compare(ctx context.Context, report func(error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.lost:
		}
		if changed := d.askAgain(ctx); changed != nil {
			report(changed)
			return
		}
	}
}

// askAgain asks until the driver has answered, and returns nil if it is what it was.
func (d *Driver) askAgain(ctx context.Context) *Changed {
	logger := klog.FromContext(ctx)
	for pause := firstPause; d.connected(ctx); pause = min(2*pause, longestPause) {
		changed, err := d.changes(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && changed == nil:
			logger.Info("The connection to the CSI driver was lost and is back; the driver is what it was", "driver", d.Name())
			return nil
		case err == nil:
			return changed
		}
		logger.Error(err, "The connection to the CSI driver was lost and is back, but the driver does not say what it is; asking again", "driver", d.Name(), "pause", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// connected waits until there is a connection, and is false if there will be none.
func (d *Driver) connected(ctx context.Context) bool {
	for state := d.connection.GetState(); state != connectivity.Ready; state = d.connection.GetState() {
		if state == connectivity.Shutdown || !d.connection.WaitForStateChange(ctx, state) {
			return false
		}
	}
	return true
}

// changes asks the driver all that it was asked before; nil if it says the same.
func (d *Driver) changes(ctx context.Context) (*Changed, error) {
	now, err := d.ask(ctx, func(string) {})
	if err != nil {
		return nil, err
	}
	differences := now.differences(d.told)
	if before := d.place.Load(); before != nil && len(differences) == 0 {
		place, err := d.askPlace(ctx)
		if err != nil {
			return nil, err
		}
		if !maps.Equal(*before, place) {
			differences = append(differences, fmt.Sprintf("its node is at %v, not at %v", place, *before))
		}
	}
	if len(differences) == 0 {
		return nil, nil
	}
	return &Changed{Driver: d.Name(), Differences: differences}, nil
}

// differences names what is not as it was before.
func (t told) differences(before told) []string {
	var all []string
	if t.name != before.name {
		all = append(all, "it is called "+t.name)
	}
	return append(all, append(gained(before.plugin, t.plugin), gained(before.controller, t.controller)...)...)
}

// gained names the capabilities that came and went.
func gained[C interface {
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
