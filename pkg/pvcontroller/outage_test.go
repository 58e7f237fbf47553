package pvcontroller_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller"
)

// After an outage of the API server no claim and no volume waits longer than the sync period.
func TestFailedObjectIsRetriedWithinSyncPeriod(t *testing.T) {
	unphased, _, _ := recycledVolume(v1.VolumePending)
	free, _, claim := recycledVolume(v1.VolumeAvailable)
	free.Finalizers, claim.Finalizers = []string{string(finalizer.VolumeProtection)},
		[]string{string(finalizer.ClaimProtection)}
	claim.Spec.StorageClassName = new("")
	for kind, objects := range map[string][]runtime.Object{"volume": {unphased}, "claim": {free, claim}} {
		for name, tc := range map[string]struct{ period, want time.Duration }{
			"15 s": {15 * time.Second, 15 * time.Second}, "an hour": {time.Hour, time.Minute}, "none": {0, time.Minute},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client := fake.NewClientset(objects...)
					longest := longestWait(client)
					run(t, client, record.NewFakeRecorder(1000), func(config *pvcontroller.Config) { config.RequeueAfter = tc.period })
					<-time.After(10 * time.Minute)
					if got := longest(); got != tc.want {
						t.Errorf("a failed %s waits %s, want %s", kind, got, tc.want)
					}
				})
			})
		}
	}
}

// longestWait has every patch of a volume fail, and returns the longest time between two.
func longestWait(client *fake.Clientset) func() time.Duration {
	var mu sync.Mutex
	var last time.Time
	var longest time.Duration
	client.PrependReactor("patch", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		if !last.IsZero() {
			longest = max(longest, time.Since(last))
		}
		last = time.Now()
		return true, nil, errors.New("no answer")
	})
	return func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return longest
	}
}
