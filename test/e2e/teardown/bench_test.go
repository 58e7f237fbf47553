package teardown

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/teardown/runner"
	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// parallel calls f for 0 to n-1, fifty at a time. A failed request ends its goroutine alone: what it was to make would be
// awaited in vain.
func parallel(t testing.TB, n int, f func(int)) {
	t.Helper()
	var group sync.WaitGroup
	slots := make(chan struct{}, 50)
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// filled is a cluster with n claims, each with a pod, and a load balancer for every fifth.
func filled(b *testing.B, n int) (*rig, []string) {
	b.Helper()
	r := rigOf(harness.Own(b, harness.Setup{Teardown: true}, harness.Within(time.Hour)))
	parallel(b, n, func(i int) {
		r.CreateClaim(fmt.Sprint("data-", i), harness.DeleteClass)
		if i%5 == 0 {
			createService(r.Session, fmt.Sprint("web-", i))
		}
	})
	volumes := r.AwaitManyBound(n)
	parallel(b, n, func(i int) { r.createUser(fmt.Sprint("pod-", i), fmt.Sprint("data-", i)) })
	for i := 0; i < n; i += 5 {
		awaitService(r.Session, fmt.Sprint("web-", i), "has an address", hasAddress)
	}
	return r, volumes
}

// BenchmarkTeardown ends b.N claims by the command, and by DELETEs of all objects at once. It reports the times, the
// memory of the command at its peak, and its requests for volumes, claims and Services per object.
func BenchmarkTeardown(b *testing.B) {
	r, volumes := filled(b, b.N)
	began := time.Now()
	parallel(b, b.N, func(i int) {
		deletePod(r.Session, fmt.Sprint("pod-", i))
		r.DeleteClaim(fmt.Sprint("data-", i))
		if i%5 == 0 {
			deleteService(r.Session, fmt.Sprint("web-", i))
		}
	})
	r.AwaitManyGone(volumes)
	for i := 0; i < b.N; i += 5 {
		awaitServiceGone(r.Session, fmt.Sprint("web-", i))
	}
	ceiling := time.Since(began)

	r, _ = filled(b, b.N)
	began = time.Now()
	peak := r.measured(b)
	took := time.Since(began) - runner.DefaultWaits().Quiet
	events, err := sandbox.ReadAudit(r.Plane.AuditLog)
	r.Must(err, "read audit log")
	var deleted time.Time
	requests := map[string]int{}
	for _, e := range events {
		if !strings.HasPrefix(e.UserAgent, "exeunt") || e.Verb == "watch" {
			continue
		}
		requests[e.Verb+" "+e.Resource]++
		if e.Resource == "alives" && e.Verb == "delete" {
			deleted = e.Time
		}
	}
	b.Logf("%d claims: deletions %s, teardown %s, from the DELETE of Alive %s, peak %d MB, requests %v", b.N, ceiling, took,
		took-deleted.Sub(began), peak>>20, requests)
	b.ReportMetric(took.Seconds()/ceiling.Seconds(), "times-ceiling")
	b.ReportMetric(float64(peak)/(1<<20), "MB")
}

// measured runs the command, and returns its memory at the peak in bytes. What a process reports at its end is not less
// than the memory of the test, from which it was forked: the peak is read while it runs.
func (r *rig) measured(b *testing.B) int {
	b.Helper()
	path, err := harness.Binaries().Path("exeunt")
	r.Must(err, "find exeunt")
	command := exec.CommandContext(context.WithoutCancel(r.Ctx), path, "teardown", "--kubeconfig="+r.Plane.AdminKubeconfig,
		"--confirm="+r.id())
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	r.Must(command.Start(), "start exeunt teardown")
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for peak := 0; ; {
		select {
		case err := <-ended:
			if err != nil {
				b.Fatalf("exeunt teardown: %v\n%s", err, &output)
			}
			return peak
		case <-ticker.C:
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Process.Pid))
			if now, err := measure.ParsePeakMemory(status); err == nil {
				peak = max(peak, now)
			}
		}
	}
}
