package e2e

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

	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// benchmarkClaims is how many claims BenchmarkRequestsPerVolume creates for each pair
// of programs.
var benchmarkClaims = flag.Int("claims", 400, "claims of BenchmarkRequestsPerVolume")

// journalOff is the flag that has our provisioner work without the journal.
const journalOff = "--feature-gates=ProvisioningJournal=false"

// zonalDriver are the flags of a driver that has volumes in one zone.
const zonalDriver = "--with=topology --topology=zone=a"

// BenchmarkRequestsPerVolume counts the API requests from the creation of claims until
// all are bound and nothing is written any more, by the audit log: per volume, by
// program, verb and resource, events apart. The claims come by the watch. The driver
// has a topology, and the claims that wait for a consumer have a selected node.
//
//	go test ./test/e2e -run xxx -bench RequestsPerVolume -benchtime 1x -claims 1000
func BenchmarkRequestsPerVolume(b *testing.B) {
	for _, pair := range []struct {
		name string
		how  setup
	}{
		{"upstream+upstream", setup{upstreamLoops: true, upstreamSidecar: true, driver: zonalDriver}},
		{"upstream+ours", setup{honor: true, upstreamLoops: true, driver: zonalDriver}},
		{"ours+ours", setup{honor: true, driver: zonalDriver}},
		{"ours+ours-without-journal", setup{honor: true, driver: zonalDriver, provisioner: journalOff}},
	} {
		b.Run(pair.name, func(b *testing.B) {
			s := enterFor(b, private(b, pair.how), 2*patience)
			s.createNode("node", map[string]string{"zone": "a"})
			s.bindAndDelete("first", 1) // connections, discovery, the first Lease
			b.Run("immediate", func(b *testing.B) { s.countRequests(b, deleteClass) })
			b.Run("selected-node", func(b *testing.B) { s.countRequests(b, waitClass, chosen("node")) })
		})
	}
}

// countRequests reports the requests for claims of the class.
func (s *scene) countRequests(b *testing.B, class string, change ...func(*v1.PersistentVolumeClaim)) {
	b.Helper()
	for b.Loop() {
		own := enterFor(b, s.cluster, 2*patience)
		before := len(own.programRequests())
		own.createClaims("claim", class, *benchmarkClaims, change...)
		own.awaitCrowdBound(*benchmarkClaims)
		own.awaitNoRequests()
		reportRequests(b, own.programRequests()[before:], *benchmarkClaims)
	}
}

// createClaims creates claims with the names PREFIX-0 and on.
func (s *scene) createClaims(prefix, class string, count int, change ...func(*v1.PersistentVolumeClaim)) {
	s.t.Helper()
	s.inParallel(count, func(i int) error {
		_, err := s.client.CoreV1().PersistentVolumeClaims(s.namespace).Create(s.ctx, s.newClaim(fmt.Sprint(prefix, "-", i), class, change...), metav1.CreateOptions{})
		return err
	})
}

// bindAndDelete has claims bound, and deletes them and their volumes.
func (s *scene) bindAndDelete(prefix string, count int) {
	s.t.Helper()
	s.createClaims(prefix, deleteClass, count)
	volumes := s.awaitCrowdBound(count)
	s.inParallel(count, func(i int) error {
		return s.client.CoreV1().PersistentVolumeClaims(s.namespace).Delete(s.ctx, fmt.Sprint(prefix, "-", i), metav1.DeleteOptions{})
	})
	s.awaitCrowdGone(volumes)
	s.awaitNoRequests()
}

// programOf returns which of the two programs a request is from, "" for neither.
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
func (s *scene) programRequests() []sandbox.Event {
	s.t.Helper()
	events, err := sandbox.ReadAudit(s.plane.AuditLog)
	s.must(err, "read audit log")
	return slices.DeleteFunc(events, func(e sandbox.Event) bool { return e.Verb == "watch" || programOf(e) == "" })
}

// quietTime is for how long no program must have sent a request: longer than the
// removal of a journal entry waits for others.
const quietTime = 2 * time.Second

// awaitNoRequests waits until both programs have sent no request for the quiet time.
func (s *scene) awaitNoRequests() {
	s.t.Helper()
	count, since := -1, time.Now()
	err := wait.PollUntilContextCancel(s.ctx, 500*time.Millisecond, true, func(context.Context) (bool, error) {
		if now := len(s.programRequests()); now != count {
			count, since = now, time.Now()
		}
		return time.Since(since) >= quietTime, nil
	})
	s.must(err, "wait until no program sends requests")
}

// reportRequests reports the requests per volume, and logs all kinds of them.
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
