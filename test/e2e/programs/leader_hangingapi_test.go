package programs

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// replica is one of two processes of a program, with its own proxy.
type replica struct {
	*sandbox.Process
	proxy *harness.LeaseProxy
}

// leaseDuration of the replicas.
const leaseDuration = 12 * time.Second

func deadlineFlags(prefix string) []string {
	return []string{
		fmt.Sprintf("--%s-lease-duration=%s", prefix, leaseDuration),
		fmt.Sprintf("--%s-renew-deadline=8s", prefix), fmt.Sprintf("--%s-retry-period=1s", prefix),
	}
}

func TestNoLeaderWritesAfterItsLeaseExpired(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{NoPrograms: true}, harness.Within(2*harness.Timeout))
	first := []replica{startReplica(s, deploy.PVController, 0), startReplica(s, deploy.Provisioner, 0)}
	for _, r := range first {
		s.AwaitLog(r.Process, `"Working"`)
	}
	second := []replica{startReplica(s, deploy.PVController, 1), startReplica(s, deploy.Provisioner, 1)}
	for _, r := range second {
		s.AwaitLog(r.Process, "Attempting to acquire leader lease")
	}
	created := createSteadily(s)
	s.AwaitBound("steady-0")
	for _, r := range first {
		r.proxy.HangAtWrite.Store(true) // a renewal may come before the next write
	}
	for _, r := range first {
		expectEndedBeforeLease(s, r)
	}
	for _, r := range second {
		s.AwaitLog(r.Process, `"Working"`)
	}
	last := created()
	s.AwaitBound(last)
}

// startReplica starts the program with leader election behind a proxy.
func startReplica(s *harness.Session, program string, number int) replica {
	s.T.Helper()
	name := fmt.Sprintf("%s-%d", program, number)
	account := sandbox.ServiceAccount(deploy.Namespace, program)
	proxy, kubeconfig := s.NewLeaseProxy(account)
	how := sandbox.Controller{Name: name, HonorReclaimPolicy: true, Kubeconfig: kubeconfig,
		Env: []string{"POD_NAMESPACE=" + deploy.Namespace}}
	var process *sandbox.Process
	var err error
	if program == deploy.PVController {
		how.Args = append(deadlineFlags("leader-elect"), "--leader-elect=true")
		process, err = s.Plane.StartPVController(s.Ctx, how)
	} else {
		how.Args = append(deadlineFlags("leader-election"), "--leader-election")
		process, err = s.Plane.StartProvisioner(s.Ctx, s.Driver, how)
	}
	s.Must(err, "start "+name)
	s.Add(process)
	return replica{process, proxy}
}

// createSteadily creates claims one after another. The returned function stops it and
// returns the name of the last claim.
func createSteadily(s *harness.Session) (stop func() string) {
	ctx, cancel := context.WithCancel(s.Ctx)
	last := make(chan string, 1)
	go func() {
		name := ""
		for i := 0; ctx.Err() == nil; i++ {
			claim := s.NewClaim(fmt.Sprintf("steady-%d", i), harness.DeleteClass)
			if _, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).
				Create(s.Ctx, claim, metav1.CreateOptions{}); err == nil {
				name = claim.Name
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		last <- name
	}()
	return func() string {
		cancel()
		return <-last
	}
}

// expectEndedBeforeLease waits until the process ends without a renewed lease, and checks
// that it wrote nothing after the lease had expired.
func expectEndedBeforeLease(s *harness.Session, r replica) {
	s.T.Helper()
	select {
	case <-r.Done():
	case <-s.Ctx.Done():
		s.T.Fatalf("%s did not end without its lease", r.Name())
	}
	ended := time.Now()
	s.ExpectEnd(r.Process)
	renewed, wrote := r.proxy.Times()
	s.T.Logf("%s: the last write came %s after the last renewal, the end after %s", r.Name(), wrote.Sub(renewed),
		ended.Sub(renewed))
	if wrote.Sub(renewed) >= leaseDuration {
		s.T.Errorf("%s wrote %s after its last renewal; the lease is valid for %s", r.Name(), wrote.Sub(renewed),
			leaseDuration)
	}
	if wrote.Before(renewed) {
		s.T.Errorf("%s wrote nothing after its last renewal, so the test shows nothing", r.Name())
	}
	if r.Err() == nil || !s.LogContains(r.Process, "the leader lease was lost") {
		s.T.Errorf("%s ended with %v, want a failure that names the lease", r.Name(), r.Err())
	}
}
