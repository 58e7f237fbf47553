package status

import (
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

func TestLeaderLeasesOfControlPlane(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	reader, err := cluster.NewReaderWithClock(&rest.Config{}, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	s := &survey{Options: Options{Reader: reader}, leasesAt: now}
	for _, name := range []string{"kube-system/pv-controller", "kube-system/garbage-collector",
		"kube-system/garbage-collector-canary-x", "other/garbage-collector"} {
		namespace, lease, _ := strings.Cut(name, "/")
		s.leases = append(s.leases, coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lease},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("pod"), LeaseDurationSeconds: ptr.To(int32(15)),
				RenewTime: &metav1.MicroTime{Time: now.Add(-5 * time.Second)}},
		})
	}
	s.addLeases()
	var got []string
	for _, lease := range s.report.Leases {
		got = append(got, lease.Namespace+"/"+lease.Program+" "+lease.State)
	}
	if want := []string{"kube-system/pv-controller held", "kube-system/garbage-collector held"}; !slices.Equal(got, want) {
		t.Errorf("leases %v, want %v", got, want)
	}
}

func TestLeaseStates(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lease := func(holder string, seconds int32, created, renewed time.Duration) *coordinationv1.Lease {
		l := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds}}
		l.CreationTimestamp = metav1.NewTime(now.Add(-created))
		if renewed > 0 {
			l.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(-renewed)}
		}
		return l
	}
	const week, day = 604800, 24 * time.Hour
	for name, tc := range map[string]struct {
		lease *coordinationv1.Lease
		want  string
	}{
		"held":                         {lease("pod", 15, day, time.Second), "held"},
		"expired":                      {lease("pod", 15, day, 20*time.Second), "expired"},
		"expired twice":                {lease("pod", 15, day, time.Minute), "expiredTwice"},
		"released":                     {lease("", 1, day, time.Second), "released"},
		"on standby, never renewed":    {lease("standby", week, day, 0), "held"},
		"on standby for over a week":   {lease("standby", week, 8*day, 0), "expired"},
		"never renewed, without times": {&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("pod")}}, "expiredTwice"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := leaseState(tc.lease, now); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
