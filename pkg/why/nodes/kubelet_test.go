package nodes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTeardownFailure(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	event := func(kind, reason, component, message string, ago time.Duration) corev1.Event {
		return corev1.Event{
			Type: kind, Reason: reason, Message: message, LastTimestamp: metav1.NewTime(now.Add(-ago)),
			Source: corev1.EventSource{Component: component},
		}
	}
	unmount := event("Warning", "FailedUnMount", "kubelet", "Unmounting volume failed", time.Minute)
	mount := event("Warning", "FailedMount", "kubelet",
		"Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[]", time.Minute)
	attach := event("Warning", "FailedAttachVolume", "attachdetach-controller",
		"cannot attach: detach from the other node first", time.Minute)
	for name, tc := range map[string]struct {
		events []corev1.Event // oldest first
		want   bool
	}{
		"none":                           {nil, false},
		"volume cannot be unmounted":     {[]corev1.Event{unmount}, true},
		"volume could not be mounted":    {[]corev1.Event{mount}, false},
		"another program cannot detach":  {[]corev1.Event{event("Warning", "FailedDetachVolume", "attachdetach-controller", "cannot detach", time.Minute)}, false},
		"volume could not be attached":   {[]corev1.Event{attach}, false},
		"mount failure after an unmount": {[]corev1.Event{unmount, mount}, true},
		"unmount by the reason of a mount": {[]corev1.Event{event("Warning", "FailedMount", "kubelet",
			"UnmountVolume.TearDown failed for volume", time.Minute)}, true},
		"containers cannot be stopped": {[]corev1.Event{event("Warning", "FailedKillPod", "kubelet", "error killing pod", time.Minute)}, true},
		"containers are stopped again": {[]corev1.Event{event("Warning", "FailedKillPod", "kubelet", "error killing pod",
			time.Minute), event("Normal", "Killing", "kubelet", "Stopping container", 2*time.Second)}, false},
		"stopped first, then the failure": {[]corev1.Event{event("Normal", "Killing", "kubelet", "Stopping container", 2*time.Minute), unmount}, true},
		"normal event of another program": {[]corev1.Event{unmount, event("Normal", "Scheduled", "scheduler", "assigned", time.Second)}, true},
		"failure of eleven minutes ago":   {[]corev1.Event{event("Warning", "FailedUnMount", "kubelet", "Unmounting volume failed", 11*time.Minute)}, false},
		"normal event in the same second": {[]corev1.Event{unmount, event("Normal", "Killing", "kubelet", "Stopping container", time.Minute)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := teardownFailure(tc.events, now); (got != nil) != tc.want {
				t.Errorf("the failure is %+v, want one: %v", got, tc.want)
			}
		})
	}
}
