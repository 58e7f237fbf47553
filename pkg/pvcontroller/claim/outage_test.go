package claim

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// After an outage of the API server no claim waits longer than the sync period.
func TestFailedClaimIsRetriedWithinSyncPeriod(t *testing.T) {
	for name, tc := range map[string]struct{ period, want time.Duration }{
		"15 s": {15 * time.Second, 15 * time.Second}, "an hour": {time.Hour, time.Minute}, "none": {0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _ := newController(t, pendingClaim(), free("v", "1"))
				defer shutDown(c)
				config := c.Config
				config.RequeueAfter = tc.period
				again := New(config)
				again.index.Update(free("v", "1"))
				longest := longestWait(c.Client.(*fake.Clientset))
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { again.Run(ctx, 1); close(ended) }()
				again.Enqueue("ns/claim")
				<-time.After(10 * time.Minute)
				if got := longest(); got != tc.want {
					t.Errorf("a failed claim waits %s, want %s", got, tc.want)
				}
				cancel()
				<-ended
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
