package bench

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// benchmarkClaims is the number of claims of BenchmarkRequestsPerVolume per pair of
// programs.
var benchmarkClaims = flag.Int("claims", 400, "claims of BenchmarkRequestsPerVolume")

// journalOff is the flag that turns the journal of our provisioner off.
const journalOff = "--feature-gates=ProvisioningJournal=false"

// zonalDriver has the flags of a driver with one zone.
const zonalDriver = "--with=topology --topology=zone=a"

// BenchmarkRequestsPerVolume counts the API requests in the audit log from the creation of
// claims until all are bound and no program writes: per volume, by program, verb and
// resource, events separately. The driver has topology; WaitForFirstConsumer claims have a
// selected node.
//
//	go test ./test/bench -run xxx -bench RequestsPerVolume -benchtime 1x -claims 1000
func BenchmarkRequestsPerVolume(b *testing.B) {
	for _, pair := range []struct {
		name string
		how  harness.Setup
	}{
		{"upstream+upstream", harness.Setup{UpstreamLoops: true, UpstreamSidecar: true, DriverFlags: zonalDriver}},
		{"upstream+ours", harness.Setup{UpstreamLoops: true, DriverFlags: zonalDriver}},
		{"ours+ours", harness.Setup{DriverFlags: zonalDriver}},
		{"ours+ours-without-journal", harness.Setup{DriverFlags: zonalDriver, ProvisionerFlags: journalOff}},
	} {
		b.Run(pair.name, func(b *testing.B) {
			s := harness.Own(b, pair.how, harness.Within(2*harness.Timeout))
			s.CreateNode("node", map[string]string{"zone": "a"})
			bindAndDelete(s, "first", 1) // connections, discovery, the first Lease
			b.Run("immediate", func(b *testing.B) { countRequests(s, b, harness.DeleteClass) })
			b.Run("selected-node", func(b *testing.B) { countRequests(s, b, harness.WaitClass, harness.WithSelectedNode("node")) })
		})
	}
}

// countRequests reports the requests for claims of the class.
func countRequests(s *harness.Session, b *testing.B, class string, change ...func(*v1.PersistentVolumeClaim)) {
	b.Helper()
	for b.Loop() {
		own := harness.NewSession(b, s.Cluster, harness.Within(2*harness.Timeout))
		before := len(programRequests(own))
		createClaims(own, "claim", class, *benchmarkClaims, change...)
		own.AwaitManyBound(*benchmarkClaims)
		awaitNoRequests(own)
		reportRequests(b, programRequests(own)[before:], *benchmarkClaims)
	}
}

// createClaims creates count claims PREFIX-N.
func createClaims(s *harness.Session, prefix, class string, count int, change ...func(*v1.PersistentVolumeClaim)) {
	s.T.Helper()
	inParallel(s, count, func(i int) error {
		_, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Create(s.Ctx, s.NewClaim(fmt.Sprint(prefix, "-", i), class, change...), metav1.CreateOptions{})
		return err
	})
}

// bindAndDelete creates claims, and deletes them and their volumes once bound.
func bindAndDelete(s *harness.Session, prefix string, count int) {
	s.T.Helper()
	createClaims(s, prefix, harness.DeleteClass, count)
	volumes := s.AwaitManyBound(count)
	inParallel(s, count, func(i int) error {
		return s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Delete(s.Ctx, fmt.Sprint(prefix, "-", i), metav1.DeleteOptions{})
	})
	s.AwaitManyGone(volumes)
	awaitNoRequests(s)
}

// programOf returns the program that sent a request, "" for other clients.
func programOf(event sandbox.Event) string {
	switch event.User {
	case sandbox.ProvisionerAccount.Name(), sandbox.UpstreamSidecarUser.Name():
		return "provisioner"
	case sandbox.PVControllerAccount.Name(), "system:kube-controller-manager":
		return "loops"
	}
	return ""
}

// programRequests returns the requests of both programs so far, without watches.
func programRequests(s *harness.Session) []sandbox.Event {
	s.T.Helper()
	events, err := sandbox.ReadAudit(s.Plane.AuditLog)
	s.Must(err, "read audit log")
	return slices.DeleteFunc(events, func(e sandbox.Event) bool { return e.Verb == "watch" || programOf(e) == "" })
}

// quietTime is longer than the delay of the removal of journal entries.
const quietTime = 2 * time.Second

// awaitNoRequests waits until both programs have sent no request for quietTime.
func awaitNoRequests(s *harness.Session) {
	s.T.Helper()
	count, since := -1, time.Now()
	err := wait.PollUntilContextCancel(s.Ctx, 500*time.Millisecond, true, func(context.Context) (bool, error) {
		if now := len(programRequests(s)); now != count {
			count, since = now, time.Now()
		}
		return time.Since(since) >= quietTime, nil
	})
	s.Must(err, "wait until no program sends requests")
}

// reportRequests reports the requests per volume, and logs them by kind.
func reportRequests(b *testing.B, events []sandbox.Event, volumes int) {
	b.Helper()
	share := func(count int) float64 { return float64(count) / float64(volumes) }
	happened, kinds := 0, map[string]map[string]int{"loops": {}, "provisioner": {}}
	for _, event := range events {
		kind := event.Verb + " " + strings.TrimSuffix(event.Resource+"/"+event.Subresource, "/")
		if event.Code >= 400 {
			kind = fmt.Sprintf("%s (%d)", kind, event.Code)
		}
		kinds[programOf(event)][kind]++
		if event.Resource == "events" {
			happened++
		}
	}
	b.ReportMetric(share(len(events)-happened), "requests/volume")
	b.ReportMetric(share(happened), "events/volume")
	for _, program := range slices.Sorted(maps.Keys(kinds)) {
		sum, list := 0, []string{}
		for kind, count := range kinds[program] {
			if list = append(list, fmt.Sprintf("%.3f %s", share(count), kind)); !strings.HasSuffix(kind, " events") {
				sum += count
			}
		}
		slices.Sort(list)
		b.ReportMetric(share(sum), program+"/volume")
		b.Logf("%s: %s", program, strings.Join(list, ", "))
	}
}
