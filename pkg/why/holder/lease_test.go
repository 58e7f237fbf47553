package holder

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

func newLease(holder string, renewedAgo time.Duration, seconds int32) coordinationv1.Lease {
	return coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lease", CreationTimestamp: at(24 * time.Hour)},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: ptr.To(seconds), RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-renewedAgo))),
		},
	}
}

func TestLeaseState(t *testing.T) {
	withoutTimes := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(time.Hour)}, Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("x")}}
	for name, tc := range map[string]struct {
		leases []coordinationv1.Lease
		want   blocker.LeaseState
	}{
		"none":                           {nil, blocker.LeaseAbsent},
		"renewed just now":               {[]coordinationv1.Lease{newLease("x", time.Second, 15)}, blocker.LeaseHeld},
		"renewed at its end":             {[]coordinationv1.Lease{newLease("x", 15*time.Second, 15)}, blocker.LeaseHeld},
		"has run out":                    {[]coordinationv1.Lease{newLease("x", 16*time.Second, 15)}, blocker.LeaseExpired},
		"has run out once":               {[]coordinationv1.Lease{newLease("x", 30*time.Second, 15)}, blocker.LeaseExpired},
		"has run out twice":              {[]coordinationv1.Lease{newLease("x", 31*time.Second, 15)}, blocker.LeaseExpiredTwice},
		"renewed in the future":          {[]coordinationv1.Lease{newLease("x", -time.Hour, 15)}, blocker.LeaseHeld},
		"released just now":              {[]coordinationv1.Lease{newLease("", 3*time.Second, 1)}, blocker.LeaseExpired},
		"released 20 s ago":              {[]coordinationv1.Lease{newLease("", 20*time.Second, 1)}, blocker.LeaseExpired},
		"released long ago":              {[]coordinationv1.Lease{newLease("", time.Minute, 1)}, blocker.LeaseExpiredTwice},
		"long duration":                  {[]coordinationv1.Lease{newLease("x", time.Minute, 137)}, blocker.LeaseHeld},
		"without a duration":             {[]coordinationv1.Lease{newLease("x", 20*time.Second, 0)}, blocker.LeaseExpired},
		"never renewed":                  {[]coordinationv1.Lease{withoutTimes}, blocker.LeaseExpiredTwice},
		"the freshest of several counts": {[]coordinationv1.Lease{newLease("x", time.Hour, 15), newLease("y", time.Second, 15), newLease("z", time.Minute, 15)}, blocker.LeaseHeld},
	} {
		t.Run(name, func(t *testing.T) {
			got, lease := leaseState(tc.leases, now)
			if got != tc.want || (lease == nil) != (len(tc.leases) == 0) {
				t.Errorf("the state is %v with Lease %v, want %v", got, lease, tc.want)
			}
		})
	}
}
