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
		holder   string
		renewed  time.Duration
		duration int32
		want     blocker.LeaseState
	}{
		"renewed just now":              {"pod", time.Second, 40, blocker.LeaseHeld},
		"renewed in the future":         {"pod", -time.Minute, 40, blocker.LeaseHeld},
		"run out once":                  {"pod", 41 * time.Second, 40, blocker.LeaseExpired},
		"run out twice over":            {"pod", 81 * time.Second, 40, blocker.LeaseExpiredTwice},
		"released by its leader":        {"", 3 * time.Second, 1, blocker.LeaseExpired},
		"released, and not taken again": {"", time.Minute, 1, blocker.LeaseExpiredTwice},
		"without a duration":            {"pod", 20 * time.Second, 0, blocker.LeaseExpired},
	} {
		t.Run(name, func(t *testing.T) {
			lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &tc.holder, RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-tc.renewed))),
				LeaseDurationSeconds: ptr.To(tc.duration),
			}}
			if got := blocker.JudgeLease(lease, now); got != tc.want {
				t.Errorf("JudgeLease() = %v, want %v", got, tc.want)
			}
		})
	}
	applied := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("standby"), LeaseDurationSeconds: ptr.To[int32](604800)},
	}
	if got := blocker.JudgeLease(applied, now); got != blocker.LeaseHeld {
		t.Errorf("JudgeLease(never renewed) = %v, want held since its creation", got)
	}
}
