package deadline_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/graceful/deadline"
)

// A virtual machine that was deleted at noon with kubectl delete --grace-period=300.
var (
	noon    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	machine = &metav1.ObjectMeta{
		DeletionTimestamp:          &metav1.Time{Time: noon.Add(5 * time.Minute)},
		DeletionGracePeriodSeconds: ptr.To[int64](300),
	}
)

// Until when may the machine shut down? A plain deletion has the controller's default, here 30 seconds.
func ExampleDeletion_Deadline() {
	plain := &metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: noon}, DeletionGracePeriodSeconds: ptr.To[int64](0)}
	fmt.Println(deadline.Of(machine).Deadline(30 * time.Second).Format(time.TimeOnly))
	fmt.Println(deadline.Of(plain).Deadline(30 * time.Second).Format(time.TimeOnly))
	// Output:
	// 12:05:00
	// 12:00:30
}

// When does the timer of the machine fire?
func ExampleDeletion_Remaining() {
	now := noon.Add(time.Minute)
	fmt.Println(deadline.Of(machine).Remaining(now, 30*time.Second))
	// Output: 4m0s
}

// Does the user want the power cut at once? A grace period of 0 alone is no force.
func ExampleDeletion_Forced() {
	plain := &metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: noon}, DeletionGracePeriodSeconds: ptr.To[int64](0)}
	forced := plain.DeepCopy()
	forced.Annotations = map[string]string{deadline.Annotation: "2026-01-01T12:00:00Z/2026-01-01T12:00:00Z"}
	fmt.Println(deadline.Of(plain).Forced(), deadline.Of(forced).Forced())
	// Output: false true
}

// When was the machine deleted? With a grace period the deletion timestamp is in the future.
func ExampleDeletion_Requested() {
	fmt.Println(deadline.Of(machine).Requested().Format(time.TimeOnly))
	// Output: 12:00:00
}

// With which grace period does the controller delete the pod of the machine?
func ExampleDeletion_ForDependents() {
	for _, now := range []time.Time{noon.Add(time.Minute), noon.Add(time.Hour)} {
		seconds := deadline.Of(machine).ForDependents(now, 30*time.Second)
		options := metav1.DeleteOptions{GracePeriodSeconds: &seconds}
		fmt.Println(*options.GracePeriodSeconds)
	}
	// Output:
	// 240
	// 1
}

// What does the object say at an API server without graceful deletion of custom resources? The same.
func ExampleOf() {
	stored := &metav1.ObjectMeta{
		DeletionTimestamp:          &metav1.Time{Time: noon},
		DeletionGracePeriodSeconds: ptr.To[int64](0),
		Annotations:                map[string]string{deadline.Annotation: "2026-01-01T12:00:00Z/2026-01-01T12:05:00Z"},
	}
	for _, object := range []metav1.Object{machine, stored} {
		deletion := deadline.Of(object)
		fmt.Println(deletion.Kind(), deletion.Deadline(0).Format(time.TimeOnly))
	}
	// Output:
	// Graceful 12:05:00
	// Graceful 12:05:00
}
