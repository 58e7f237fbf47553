package blocker_test

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

func TestJudgeLease(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		renewed  time.Duration
		duration int32
		want     blocker.LeaseState
	}{
		"renewed just now":              {time.Second, 40, blocker.LeaseHeld},
		"renewed in the future":         {-time.Minute, 40, blocker.LeaseHeld},
		"run out once":                  {41 * time.Second, 40, blocker.LeaseExpired},
		"run out twice over":            {81 * time.Second, 40, blocker.LeaseExpiredTwice},
		"released by its leader":        {3 * time.Second, 1, blocker.LeaseHeld},
		"released, and not taken again": {time.Minute, 1, blocker.LeaseExpiredTwice},
	} {
		t.Run(name, func(t *testing.T) {
			lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
				RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-tc.renewed))), LeaseDurationSeconds: ptr.To(tc.duration),
			}}
			if got := blocker.JudgeLease(lease, now); got != tc.want {
				t.Errorf("JudgeLease() = %v, want %v", got, tc.want)
			}
		})
	}
	if got := blocker.JudgeLease(&coordinationv1.Lease{}, now); got != blocker.LeaseExpired {
		t.Errorf("JudgeLease(never renewed) = %v, want expired", got)
	}
}
