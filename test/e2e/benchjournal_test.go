package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/journal"
)

// BenchmarkJournal reports what the journal writes per volume: for 1,000 claims at
// once with a driver that answers at once and with one that takes 2 s, and for claims
// that come one after another, ten a second.
//
//	go test ./test/e2e -run xxx -bench Journal -benchtime 1x
func BenchmarkJournal(b *testing.B) {
	for _, load := range []struct {
		name    string
		latency time.Duration
		claims  int
		every   time.Duration
	}{
		{"at-once/driver-0s", 0, benchmarkCrowd, 0},
		{"at-once/driver-2s", 2 * time.Second, benchmarkCrowd, 0},
		{"10-per-second/driver-0s", 0, 200, 100 * time.Millisecond},
	} {
		b.Run(load.name, func(b *testing.B) {
			s := enterFor(b, private(b, setup{honor: true, driver: slowDriver(b, load.latency)}), 2*patience)
			s.bindAndDelete("first", 1)
			for b.Loop() {
				own := enterFor(b, s.cluster, 2*patience)
				before, sizes, start := own.journalWrites(), own.watchEntries(), time.Now()
				own.arrive(load.claims, load.every)
				own.awaitCrowdBound(load.claims)
				took := time.Since(start)
				own.awaitNoRequests()
				after := own.journalWrites()
				own.expectLeaseWrites(after.commits)
				share := func(count float64) float64 { return count / float64(load.claims) }
				b.ReportMetric(share(after.commits-before.commits), "commits/volume")
				b.ReportMetric(share(after.bytes-before.bytes), "B/volume")
				b.ReportMetric(float64(load.claims)/took.Seconds(), "bound/s")
				entries, mean := sizes()
				b.ReportMetric(mean, "B/entry")
				b.ReportMetric((after.bytes-before.bytes)/mean/(after.commits-before.commits), "entries/commit")
				b.Logf("%d different entries were watched", entries)
			}
		})
	}
}

// slowDriver returns the flags of a driver whose CreateVolume takes the time.
func slowDriver(b *testing.B, latency time.Duration) string {
	b.Helper()
	if latency == 0 {
		return ""
	}
	file := filepath.Join(b.TempDir(), "faults.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "- method: CreateVolume\n  latency: %s\n", latency), 0o600); err != nil {
		b.Fatal(err)
	}
	return "--faults=" + file
}

// arrive creates claims, all at once or one each interval.
func (s *scene) arrive(count int, every time.Duration) {
	s.t.Helper()
	if every == 0 {
		s.createClaims("claim", deleteClass, count)
		return
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for i := range count {
		<-ticker.C
		s.createClaim(fmt.Sprint("claim-", i), deleteClass)
	}
}

// written is what the journal has written so far.
type written struct{ commits, bytes float64 }

// journalWrites reads the metrics of the provisioner.
func (s *scene) journalWrites() written {
	s.t.Helper()
	text, _ := s.get(s.provisioner, "/metrics")
	value := func(name string) float64 {
		found := regexp.MustCompile(`(?m)^exeunt_provisioning_journal_` + name + ` (\S+)$`).FindStringSubmatch(text)
		if found == nil {
			s.t.Fatalf("there is no metric %s", name)
		}
		number, err := strconv.ParseFloat(found[1], 64)
		s.must(err, "read metric "+name)
		return number
	}
	return written{value("commits_total"), value("commit_bytes_total")}
}

// expectLeaseWrites compares the metric with the audit log.
func (s *scene) expectLeaseWrites(commits float64) {
	s.t.Helper()
	logged := 0
	for _, event := range s.programRequests() {
		if event.Resource == "leases" && event.Writes() && event.Code < 300 {
			logged++
		}
	}
	if float64(logged) != commits {
		s.t.Errorf("the metric counts %v commits, the audit log has %d", commits, logged)
	}
}

// watchEntries watches the Leases of the journal. The function that it returns ends
// that, and returns how many claims had an entry and the mean size of an entry.
func (s *scene) watchEntries() func() (int, float64) {
	s.t.Helper()
	source := cache.NewListWatchFromClient(s.client.CoordinationV1().RESTClient(), "leases", deploy.Namespace, fields.Everything())
	sizes := map[types.UID]int{}
	ctx, stop := context.WithCancel(s.ctx)
	watched, err := source.WatchWithContext(ctx, metav1.ListOptions{})
	s.must(err, "watch Leases")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range watched.ResultChan() {
			if lease, ok := event.Object.(*coordinationv1.Lease); ok {
				for claim, text := range journal.Encoded(lease) {
					sizes[claim] = len(text)
				}
			}
		}
	}()
	return func() (int, float64) {
		stop()
		watched.Stop()
		<-done
		sum := 0
		for _, size := range sizes {
			sum += size
		}
		return len(sizes), float64(sum) / float64(max(1, len(sizes)))
	}
}

// lonelyClaims is how many claims BenchmarkLonelyClaim creates with the journal, and
// without it.
const lonelyClaims = 30

// BenchmarkLonelyClaim reports the median time from the creation of a claim to its
// PersistentVolume, by the audit log, in a cluster in which nothing else happens: with
// the journal and without it, in turns, each with a driver and a provisioner of its
// own. What the journal adds is about ms-commit, the median time that the API server
// takes for one of its writes; ms-added is the difference of two noisy medians.
//
//	go test ./test/e2e -run xxx -bench LonelyClaim -benchtime 1x
func BenchmarkLonelyClaim(b *testing.B) {
	s := enterFor(b, private(b, setup{honor: true, bare: true}), 2*patience)
	scenes := map[string]*scene{
		"on":  s.beside("on.csi.example.com", "", ""),
		"off": s.beside("off.csi.example.com", "", journalOff),
	}
	for name, own := range scenes {
		class := newClass(name, own.driver.DriverName, v1.PersistentVolumeReclaimDelete, "Immediate")
		_, err := s.client.StorageV1().StorageClasses().Create(s.ctx, &class, metav1.CreateOptions{})
		s.must(err, "create class")
		own.createLonely("first-"+name, name)
	}
	b.ResetTimer()
	for round := 0; b.Loop(); round++ {
		claims := map[string][]types.UID{}
		for i := range lonelyClaims {
			for name, own := range scenes {
				claims[name] = append(claims[name], own.createLonely(fmt.Sprintf("claim-%s-%d-%d", name, round, i), name))
			}
		}
		on, off := s.latency(claims["on"]), s.latency(claims["off"])
		b.ReportMetric(on, "ms-journal")
		b.ReportMetric(off, "ms-without")
		b.ReportMetric(on-off, "ms-added")
		commits := s.commitsSince(claims["on"][0])
		b.ReportMetric(float64(len(commits))/lonelyClaims, "commits/volume")
		b.ReportMetric(median(commits), "ms-commit")
	}
}

// createLonely has a claim bound and waits until its journal entry is removed.
func (s *scene) createLonely(name, class string) types.UID {
	s.t.Helper()
	claim := s.createClaim(name, class)
	s.awaitBound(name)
	err := wait.PollUntilContextCancel(s.ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		leases, err := s.client.CoordinationV1().Leases(deploy.Namespace).List(ctx, metav1.ListOptions{LabelSelector: journal.KindLabel})
		if err != nil {
			return false, err
		}
		return !slices.ContainsFunc(leases.Items, func(l coordinationv1.Lease) bool { return len(journal.Encoded(&l)) > 0 }), nil
	})
	s.must(err, "wait until the journal is empty")
	return claim.UID
}

// latency returns the median time from each claim to its volume, in milliseconds.
func (s *scene) latency(claims []types.UID) float64 {
	s.t.Helper()
	events, err := sandbox.ReadAudit(s.plane.AuditLog)
	s.must(err, "read audit log")
	var taken []time.Duration
	for _, uid := range claims {
		volume, err := s.client.CoreV1().PersistentVolumes().Get(s.ctx, "pvc-"+string(uid), metav1.GetOptions{})
		s.must(err, "read volume")
		created := func(resource, name string) sandbox.Event {
			i := slices.IndexFunc(events, func(e sandbox.Event) bool {
				return e.Verb == "create" && e.Resource == resource && e.Name == name && e.Code == 201
			})
			if i < 0 {
				s.t.Fatalf("the audit log does not have the creation of %s %s", resource, name)
			}
			return events[i]
		}
		claim := created("persistentvolumeclaims", volume.Spec.ClaimRef.Name)
		taken = append(taken, created("persistentvolumes", volume.Name).Time.Sub(claim.Time))
	}
	slices.Sort(taken)
	return median(taken)
}

// commitsSince returns how long the API server took for each write of the journal since
// the claim was created, sorted.
func (s *scene) commitsSince(claim types.UID) []time.Duration {
	s.t.Helper()
	volume, err := s.client.CoreV1().PersistentVolumes().Get(s.ctx, "pvc-"+string(claim), metav1.GetOptions{})
	s.must(err, "read volume")
	var commits []time.Duration
	since := false
	for _, event := range s.programRequests() {
		since = since || event.Name == volume.Spec.ClaimRef.Name
		if since && event.Resource == "leases" && event.Writes() {
			commits = append(commits, event.Duration)
		}
	}
	slices.Sort(commits)
	return commits
}

// median returns the middle of sorted durations, in milliseconds.
func median(sorted []time.Duration) float64 {
	return float64(sorted[len(sorted)/2].Microseconds()) / 1000
}
