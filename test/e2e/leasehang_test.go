package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// replica is one of two processes of one program, behind a proxy of its own.
type replica struct {
	*sandbox.Process
	proxy *leaseProxy
}

// brieflyValid is how long the leases of this test are valid.
const brieflyValid = 12 * time.Second

func deadlineFlags(prefix string) []string {
	return []string{
		fmt.Sprintf("--%s-lease-duration=%s", prefix, brieflyValid),
		fmt.Sprintf("--%s-renew-deadline=8s", prefix), fmt.Sprintf("--%s-retry-period=1s", prefix),
	}
}

func TestNoLeaderWritesAfterItsLeaseExpired(t *testing.T) {
	t.Parallel()
	s := enterFor(t, private(t, setup{idle: true}), 2*patience)
	first := []replica{s.startReplica(deploy.PVController, 0), s.startReplica(deploy.Provisioner, 0)}
	for _, r := range first {
		s.awaitLog(r.Process, `"Working"`)
	}
	second := []replica{s.startReplica(deploy.PVController, 1), s.startReplica(deploy.Provisioner, 1)}
	for _, r := range second {
		s.awaitLog(r.Process, "Attempting to acquire leader lease")
	}
	created := s.createSteadily()
	s.awaitBound("steady-0")
	for _, r := range first {
		r.proxy.hanging.Store(true)
	}
	for _, r := range first {
		s.expectEndedBeforeLease(r)
	}
	for _, r := range second {
		s.awaitLog(r.Process, `"Working"`)
	}
	last := created()
	s.awaitBound(last)
}

// startReplica starts the program with an election, behind a proxy.
func (s *scene) startReplica(program string, number int) replica {
	s.t.Helper()
	name := fmt.Sprintf("%s-%d", program, number)
	account := sandbox.ServiceAccount(deploy.Namespace, program)
	proxy, kubeconfig := s.newLeaseProxy(account)
	how := sandbox.Controller{Name: name, HonorReclaimPolicy: true, Kubeconfig: kubeconfig, Env: []string{"POD_NAMESPACE=" + deploy.Namespace}}
	var process *sandbox.Process
	var err error
	if program == deploy.PVController {
		how.Args = append(deadlineFlags("leader-elect"), "--leader-elect=true")
		process, err = s.plane.StartPVController(s.ctx, how)
	} else {
		how.Args = append(deadlineFlags("leader-election"), "--leader-election")
		process, err = s.plane.StartProvisioner(s.ctx, s.driver, how)
	}
	s.must(err, "start "+name)
	s.processes = append(s.processes, process)
	return replica{process, proxy}
}

// createSteadily creates claims one after another, and returns a function that stops
// that and returns the name of the last one.
func (s *scene) createSteadily() (stop func() string) {
	ctx, cancel := context.WithCancel(s.ctx)
	last := make(chan string, 1)
	go func() {
		name := ""
		for i := 0; ctx.Err() == nil; i++ {
			claim := s.newClaim(fmt.Sprintf("steady-%d", i), deleteClass)
			if _, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Create(s.ctx, claim, metav1.CreateOptions{}); err == nil {
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

// expectEndedBeforeLease waits until the process has ended, because its lease was not
// renewed, and checks that it wrote nothing after the lease has expired.
func (s *scene) expectEndedBeforeLease(r replica) {
	s.t.Helper()
	select {
	case <-r.Done():
	case <-s.ctx.Done():
		s.t.Fatalf("%s goes on without its lease", r.Name())
	}
	ended := time.Now()
	s.forget(r.Process)
	renewed, wrote := r.proxy.times()
	s.t.Logf("%s: the last write came %s after the last renewal, the end after %s", r.Name(), wrote.Sub(renewed), ended.Sub(renewed))
	if wrote.Sub(renewed) >= brieflyValid {
		s.t.Errorf("%s wrote %s after its last renewal; the lease is valid for %s", r.Name(), wrote.Sub(renewed), brieflyValid)
	}
	if wrote.Before(renewed) {
		s.t.Errorf("%s did nothing while its lease was not renewed, so that nothing is shown", r.Name())
	}
	if r.Err() == nil || !s.logContains(r.Process, "the leader lease was lost") {
		s.t.Errorf("%s ended with %v, want a failure that names the lease", r.Name(), r.Err())
	}
}
