package volume

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// After an outage of the API server no volume waits longer than the sync period.
func TestFailedVolumeIsRetriedWithinSyncPeriod(t *testing.T) {
	for name, tc := range map[string]struct{ period, want time.Duration }{
		"15 s": {15 * time.Second, 15 * time.Second}, "an hour": {time.Hour, time.Minute}, "none": {0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFixture(t, releasedVolume(retains, createdByPerson, unclaimed, inPhase(v1.VolumePending)))
				config := s.Config
				config.RequeueAfter = tc.period
				again := New(config)
				longest := longestWait(s.Client.(*fake.Clientset))
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { again.Run(ctx, 1); close(ended) }()
				again.Enqueue("v")
				<-time.After(10 * time.Minute)
				if got := longest(); got != tc.want {
					t.Errorf("a failed volume waits %s, want %s", got, tc.want)
				}
				cancel()
				<-ended
				s.Run(ctx, 1) // ends the goroutines of the queues
				s.reclaimer.Run(ctx)
			})
		})
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
