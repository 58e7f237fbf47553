package nodes

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// recent is how long an error event counts as reported now.
const recent = 10 * time.Minute

// observeEvents finds the last error that the kubelet reports about stopping the pod.
func (o *observation) observeEvents(ctx context.Context, e chain.Explorer) {
	events, seen := cluster.EventsOf(ctx, e.Reader(), "Pod", o.pod)
	o.state.EventsUnseen = !seen
	if event := teardownFailure(events, e.Reader().Now()); event != nil {
		o.state.ReportsError = true
		o.add(blocker.FromEvent, "%s (%s, last at %s): %s", event.Reason, terminal.Times(event.Count),
			blocker.Time(cluster.EventTime(*event)), event.Message)
	}
}

// teardownFailure returns the latest recent event about a failed teardown, or nil. A later
// normal event of the kubelet says that it went on. Events are sorted, oldest first.
func teardownFailure(events []corev1.Event, now time.Time) *corev1.Event {
	var latest *corev1.Event
	for i := range events {
		switch event := &events[i]; {
		case isTeardownFailure(*event):
			latest = event
		case latest != nil && event.Type == corev1.EventTypeNormal && cluster.Component(event) == kubelet &&
			cluster.EventTime(*event).After(cluster.EventTime(*latest)):
			latest = nil
		}
	}
	if latest == nil || now.Sub(cluster.EventTime(*latest)) > recent {
		return nil
	}
	return latest
}

// isTeardownFailure reports whether the kubelet says that containers or volumes of a pod
// could not be stopped. A failed probe or preStop hook does not keep a pod, nor does a volume
// that cannot be attached or mounted, whose message names "unmounted volumes".
func isTeardownFailure(event corev1.Event) bool {
	if event.Type != corev1.EventTypeWarning || cluster.Component(&event) != kubelet ||
		slices.Contains(notTeardown, event.Reason) {
		return false
	}
	text := strings.ReplaceAll(strings.ToLower(event.Reason+" "+event.Message), "unmounted volumes", "")
	for _, word := range []string{"failedkillpod", "unmount", "teardown", "tear down", "unmap", "detach"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// notTeardown are reasons of warnings that do not keep a pod, whatever their messages say.
var notTeardown = []string{"FailedPreStopHook"}

// kubelet is the component whose events count: it alone stops the pod.
const kubelet = "kubelet"

// observeDrivers names the CSI drivers of the pod's volumes that the kubelet does not know:
// without its driver a volume cannot be unmounted.
func (o *observation) observeDrivers(ctx context.Context, e chain.Explorer) {
	if o.node == nil || !o.state.ReportsError {
		return
	}
	csi, presence := cluster.Get(ctx, e.Reader(), cluster.CSINodes, "", o.node.Name)
	if presence == cluster.Unseen {
		return
	}
	registered := map[string]bool{}
	if csi != nil {
		for _, driver := range csi.Spec.Drivers {
			registered[driver.Name] = true
		}
	}
	for _, driver := range o.drivers(ctx, e) {
		if !registered[driver] {
			o.add(blocker.FromField, "the CSI driver %s of a volume of the pod is not registered on node %s: the pod of the driver is missing there", driver, o.node.Name)
		}
	}
}

// drivers returns the CSI drivers of the pod's volumes, each once.
func (o *observation) drivers(ctx context.Context, e chain.Explorer) []string {
	var found []string
	for _, volume := range o.pod.Spec.Volumes {
		switch {
		case volume.CSI != nil:
			found = append(found, volume.CSI.Driver)
		case volume.PersistentVolumeClaim != nil:
			found = append(found, driverOf(ctx, e, o.pod.Namespace, volume.PersistentVolumeClaim.ClaimName))
		case volume.Ephemeral != nil:
			found = append(found, driverOf(ctx, e, o.pod.Namespace, o.pod.Name+"-"+volume.Name))
		}
	}
	slices.Sort(found)
	return slices.DeleteFunc(slices.Compact(found), func(driver string) bool { return driver == "" })
}

// driverOf returns the CSI driver of the claim's volume, or "".
func driverOf(ctx context.Context, e chain.Explorer, namespace, claim string) string {
	object, _ := cluster.Get(ctx, e.Reader(), cluster.PersistentVolumeClaims, namespace, claim)
	if object == nil || object.Spec.VolumeName == "" {
		return ""
	}
	volume, _ := cluster.Get(ctx, e.Reader(), cluster.PersistentVolumes, "", object.Spec.VolumeName)
	if volume == nil || volume.Spec.CSI == nil {
		return ""
	}
	return volume.Spec.CSI.Driver
}
