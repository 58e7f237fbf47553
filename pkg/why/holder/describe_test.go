package holder

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

func newLease(holder string, renewedAgo time.Duration, seconds int32) coordinationv1.Lease {
	return coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lease", CreationTimestamp: at(24 * time.Hour)},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: ptr.To(seconds),
			RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-renewedAgo))),
		},
	}
}

func TestLeaseState(t *testing.T) {
	withoutTimes := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(time.Hour)},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("x")}}
	for name, tc := range map[string]struct {
		leases []coordinationv1.Lease
		want   blocker.LeaseState
	}{
		"none":                  {nil, blocker.LeaseAbsent},
		"renewed just now":      {[]coordinationv1.Lease{newLease("x", time.Second, 15)}, blocker.LeaseHeld},
		"renewed at its end":    {[]coordinationv1.Lease{newLease("x", 15*time.Second, 15)}, blocker.LeaseHeld},
		"has run out":           {[]coordinationv1.Lease{newLease("x", 16*time.Second, 15)}, blocker.LeaseExpired},
		"has run out once":      {[]coordinationv1.Lease{newLease("x", 30*time.Second, 15)}, blocker.LeaseExpired},
		"has run out twice":     {[]coordinationv1.Lease{newLease("x", 31*time.Second, 15)}, blocker.LeaseExpiredTwice},
		"renewed in the future": {[]coordinationv1.Lease{newLease("x", -time.Hour, 15)}, blocker.LeaseHeld},
		"released just now":     {[]coordinationv1.Lease{newLease("", 3*time.Second, 1)}, blocker.LeaseExpired},
		"released 20 s ago":     {[]coordinationv1.Lease{newLease("", 20*time.Second, 1)}, blocker.LeaseExpired},
		"released long ago":     {[]coordinationv1.Lease{newLease("", time.Minute, 1)}, blocker.LeaseExpiredTwice},
		"long duration":         {[]coordinationv1.Lease{newLease("x", time.Minute, 137)}, blocker.LeaseHeld},
		"without a duration":    {[]coordinationv1.Lease{newLease("x", 20*time.Second, 0)}, blocker.LeaseExpired},
		"never renewed":         {[]coordinationv1.Lease{withoutTimes}, blocker.LeaseExpiredTwice},
		"the freshest of several counts": {[]coordinationv1.Lease{newLease("x", time.Hour, 15),
			newLease("y", time.Second, 15), newLease("z", time.Minute, 15)}, blocker.LeaseHeld},
	} {
		t.Run(name, func(t *testing.T) {
			got, lease := leaseState(tc.leases, now)
			if got != tc.want || (lease == nil) != (len(tc.leases) == 0) {
				t.Errorf("the state is %v with Lease %v, want %v", got, lease, tc.want)
			}
		})
	}
}

func TestLeaseIsFoundByItsHolder(t *testing.T) {
	named := func(name string, renewedAgo time.Duration) coordinationv1.Lease {
		lease := newLease("keda-operator-abc_1", renewedAgo, 15)
		lease.Name = name
		return lease
	}
	for name, tc := range map[string]struct {
		leases []coordinationv1.Lease
		driver string
		want   blocker.LeaseState
	}{
		"by the name of the table":     {[]coordinationv1.Lease{named("operator.keda.sh", time.Second)}, "", blocker.LeaseHeld},
		"by the holder":                {[]coordinationv1.Lease{named("renamed", time.Second)}, "", blocker.LeaseHeld},
		"by the holder, run out twice": {[]coordinationv1.Lease{named("renamed", time.Hour)}, "", blocker.LeaseExpiredTwice},
		"the name wins": {[]coordinationv1.Lease{named("operator.keda.sh", time.Hour),
			named("other", time.Second)}, "", blocker.LeaseExpiredTwice},
		"another sidecar's Lease of a pod": {[]coordinationv1.Lease{named("renamed", time.Second)}, "a.example", blocker.LeaseAbsent},
	} {
		t.Run(name, func(t *testing.T) {
			s := sighting{
				controller: families.Controller{Leases: []string{"operator.keda.sh"}}, driver: tc.driver, now: now,
				programs: []program{{workload: workload{kind: "Deployment", namespace: "ns", name: "keda-operator"}}},
			}
			if s.findLease(tc.leases, true); s.leaseState != tc.want {
				t.Errorf("the state is %v, want %v", s.leaseState, tc.want)
			}
		})
	}
}

func TestStateBesideStandbyLease(t *testing.T) {
	for _, s := range allStates() {
		got := besideStandby(s.Workload, s.Lease)
		reason, verdict := blocker.JudgeController(got)
		alive := s.Workload == blocker.WorkloadReady || s.Workload == blocker.WorkloadStarting
		settled := s.Lease == blocker.LeaseAbsent || s.Lease == blocker.LeaseExpiredTwice
		switch {
		case !alive || s.Lease == blocker.LeaseHeld:
			if want := (blocker.ControllerState{Workload: s.Workload, Lease: s.Lease}); got != want {
				t.Errorf("%v, %v: %+v, want %+v", s.Workload, s.Lease, got, want)
			}
		case settled && (reason != blocker.ControllerGone || verdict != blocker.Stuck):
			t.Errorf("%v, %v: %v, %v, though its replicas wait", s.Workload, s.Lease, reason, verdict)
		case !settled && verdict != blocker.Unknown:
			t.Errorf("%v, %v: %v, %v, though another Lease may have a leader", s.Workload, s.Lease, reason, verdict)
		}
	}
}

func TestStandbyLeaseIsThatOfPVController(t *testing.T) {
	for name, want := range map[string]bool{
		"kube-system/pv-controller standby": true, "kube-system/pv-controller pod_u_exeunt": false,
		"kube-system/pv-controller ":  false,
		"other/pv-controller standby": false, "kube-system/kube-controller-manager standby": false,
	} {
		place, by, _ := strings.Cut(name, " ")
		lease := newLease(by, 0, 15)
		lease.Namespace, lease.Name, _ = strings.Cut(place, "/")
		if got := isStandby(lease); got != want {
			t.Errorf("isStandby(%s) = %t, want %t", name, got, want)
		}
	}
}
