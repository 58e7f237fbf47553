package bench

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
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// BenchmarkJournal reports the journal's writes per volume: for 1,000 claims at once with
// a driver that answers at once or after 2 s, and for ten new claims per second.
//
//	go test ./test/bench -run xxx -bench Journal -benchtime 1x
func BenchmarkJournal(b *testing.B) {
	for _, load := range []struct {
		name    string
		latency time.Duration
		claims  int
		every   time.Duration
	}{
		{"at-once/driver-0s", 0, claimCount, 0},
		{"at-once/driver-2s", 2 * time.Second, claimCount, 0},
		{"10-per-second/driver-0s", 0, 200, 100 * time.Millisecond},
	} {
		b.Run(load.name, func(b *testing.B) {
			s := harness.Own(b, harness.Setup{DriverFlags: slowDriver(b, load.latency)}, harness.Within(2*harness.Timeout))
			bindAndDelete(s, "first", 1)
			for b.Loop() {
				own := harness.NewSession(b, s.Cluster, harness.Within(2*harness.Timeout))
				before, sizes, start := journalWrites(own), watchEntries(own), time.Now()
				arrive(own, load.claims, load.every)
				own.AwaitManyBound(load.claims)
				took := time.Since(start)
				awaitNoRequests(own)
				after := journalWrites(own)
				expectLeaseWrites(own, after.commits)
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

// slowDriver returns the flags of a driver whose CreateVolume has the latency.
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

// arrive creates claims, all at once or one per interval.
func arrive(s *harness.Session, count int, every time.Duration) {
	s.T.Helper()
	if every == 0 {
		createClaims(s, "claim", harness.DeleteClass, count)
		return
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for i := range count {
		<-ticker.C
		s.CreateClaim(fmt.Sprint("claim-", i), harness.DeleteClass)
	}
}

// written has the journal's writes so far.
type written struct{ commits, bytes float64 }

// journalWrites reads the metrics of the provisioner.
func journalWrites(s *harness.Session) written {
	s.T.Helper()
	text, _ := s.HTTPGet(s.Provisioner, "/metrics")
	value := func(name string) float64 {
		found := regexp.MustCompile(`(?m)^exeunt_provisioning_journal_` + name + ` (\S+)$`).FindStringSubmatch(text)
		if found == nil {
			s.T.Fatalf("there is no metric %s", name)
		}
		number, err := strconv.ParseFloat(found[1], 64)
		s.Must(err, "read metric "+name)
		return number
	}
	return written{value("commits_total"), value("commit_bytes_total")}
}

// expectLeaseWrites compares the metric with the audit log.
func expectLeaseWrites(s *harness.Session, commits float64) {
	s.T.Helper()
	logged := 0
	for _, event := range programRequests(s) {
		if event.Resource == "leases" && event.Writes() && event.Code < 300 {
			logged++
		}
	}
	if float64(logged) != commits {
		s.T.Errorf("the metric counts %v commits, the audit log has %d", commits, logged)
	}
}

// watchEntries watches the Leases of the journal. The returned function ends the watch,
// and returns the number of claims with an entry and the mean size of an entry.
func watchEntries(s *harness.Session) func() (int, float64) {
	s.T.Helper()
	source := cache.NewListWatchFromClient(s.Client.CoordinationV1().RESTClient(), "leases", deploy.Namespace, fields.Everything())
	sizes := map[types.UID]int{}
	ctx, stop := context.WithCancel(s.Ctx)
	watched, err := source.WatchWithContext(ctx, metav1.ListOptions{})
	s.Must(err, "watch Leases")
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

// singleClaims is the number of claims of BenchmarkSingleClaim, with and without journal.
const singleClaims = 30

// BenchmarkSingleClaim reports the median time from the creation of a claim to its
// PersistentVolume, by the audit log, in an otherwise idle cluster: with and without the
// journal, in turns, each with its own driver and provisioner. The journal adds about
// ms-commit, the median time of a journal write; ms-added is the difference of two noisy
// medians.
//
//	go test ./test/bench -run xxx -bench SingleClaim -benchtime 1x
func BenchmarkSingleClaim(b *testing.B) {
	s := harness.Own(b, harness.Setup{NoProvisioner: true}, harness.Within(2*harness.Timeout))
	sessions := map[string]*harness.Session{
		"on":  s.WithOwnDriver("on.csi.example.com", "", ""),
		"off": s.WithOwnDriver("off.csi.example.com", "", journalOff),
	}
	for name, own := range sessions {
		class := harness.NewClass(name, own.Driver.DriverName, v1.PersistentVolumeReclaimDelete, "Immediate")
		s.CreateStorageClass(class)
		createSingle(own, "first-"+name, name)
	}
	b.ResetTimer()
	for round := 0; b.Loop(); round++ {
		claims := map[string][]types.UID{}
		for i := range singleClaims {
			for name, own := range sessions {
				claims[name] = append(claims[name], createSingle(own, fmt.Sprintf("claim-%s-%d-%d", name, round, i), name))
			}
		}
		on, off := latency(s, claims["on"]), latency(s, claims["off"])
		b.ReportMetric(on, "ms-journal")
		b.ReportMetric(off, "ms-without")
		b.ReportMetric(on-off, "ms-added")
		commits := commitsSince(s, claims["on"][0])
		b.ReportMetric(float64(len(commits))/singleClaims, "commits/volume")
		b.ReportMetric(median(commits), "ms-commit")
	}
}

// createSingle creates a claim and waits until it is bound and its entry is removed.
func createSingle(s *harness.Session, name, class string) types.UID {
	s.T.Helper()
	claim := s.CreateClaim(name, class)
	s.AwaitBound(name)
	err := wait.PollUntilContextCancel(s.Ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		leases, err := s.Client.CoordinationV1().Leases(deploy.Namespace).List(ctx, metav1.ListOptions{LabelSelector: journal.KindLabel})
		if err != nil {
			return false, err
		}
		return !slices.ContainsFunc(leases.Items, func(l coordinationv1.Lease) bool { return len(journal.Encoded(&l)) > 0 }), nil
	})
	s.Must(err, "wait until the journal is empty")
	return claim.UID
}

// latency returns the median time from each claim to its volume, in milliseconds.
func latency(s *harness.Session, claims []types.UID) float64 {
	s.T.Helper()
	events, err := sandbox.ReadAudit(s.Plane.AuditLog)
	s.Must(err, "read audit log")
	var taken []time.Duration
	for _, uid := range claims {
		volume, err := s.Client.CoreV1().PersistentVolumes().Get(s.Ctx, "pvc-"+string(uid), metav1.GetOptions{})
		s.Must(err, "read volume")
		created := func(resource, name string) sandbox.Event {
			i := slices.IndexFunc(events, func(e sandbox.Event) bool {
				return e.Verb == "create" && e.Resource == resource && e.Name == name && e.Code == 201
			})
			if i < 0 {
				s.T.Fatalf("the audit log does not have the creation of %s %s", resource, name)
			}
			return events[i]
		}
		claim := created("persistentvolumeclaims", volume.Spec.ClaimRef.Name)
		taken = append(taken, created("persistentvolumes", volume.Name).Time.Sub(claim.Time))
	}
	slices.Sort(taken)
	return median(taken)
}

// commitsSince returns the sorted durations of the journal's writes since the creation of
// the claim.
func commitsSince(s *harness.Session, claim types.UID) []time.Duration {
	s.T.Helper()
	volume, err := s.Client.CoreV1().PersistentVolumes().Get(s.Ctx, "pvc-"+string(claim), metav1.GetOptions{})
	s.Must(err, "read volume")
	var commits []time.Duration
	since := false
	for _, event := range programRequests(s) {
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
