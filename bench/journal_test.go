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
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// BenchmarkJournal reports what the journal writes per volume: for 1,000 claims at
// once with a driver that answers at once and with one that takes 2 s, and for claims
// that come one after another, ten a second.
//
//	go test ./bench -run xxx -bench Journal -benchtime 1x
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

// written is what the journal has written so far.
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

// watchEntries watches the Leases of the journal. The function that it returns ends
// that, and returns how many claims had an entry and the mean size of an entry.
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

// lonelyClaims is how many claims BenchmarkSingleClaim creates with the journal, and
// without it.
const lonelyClaims = 30

// BenchmarkSingleClaim reports the median time from the creation of a claim to its
// PersistentVolume, by the audit log, in a cluster in which nothing else happens: with
// the journal and without it, in turns, each with a driver and a provisioner of its
// own. What the journal adds is about ms-commit, the median time that the API server
// takes for one of its writes; ms-added is the difference of two noisy medians.
//
//	go test ./bench -run xxx -bench SingleClaim -benchtime 1x
func BenchmarkSingleClaim(b *testing.B) {
	s := harness.Own(b, harness.Setup{NoProvisioner: true}, harness.Within(2*harness.Timeout))
	sessions := map[string]*harness.Session{
		"on":  s.WithOwnDriver("on.csi.example.com", "", ""),
		"off": s.WithOwnDriver("off.csi.example.com", "", journalOff),
	}
	for name, own := range sessions {
		class := harness.NewClass(name, own.Driver.DriverName, v1.PersistentVolumeReclaimDelete, "Immediate")
		s.CreateStorageClass(class)
		createLonely(own, "first-"+name, name)
	}
	b.ResetTimer()
	for round := 0; b.Loop(); round++ {
		claims := map[string][]types.UID{}
		for i := range lonelyClaims {
			for name, own := range sessions {
				claims[name] = append(claims[name], createLonely(own, fmt.Sprintf("claim-%s-%d-%d", name, round, i), name))
			}
		}
		on, off := latency(s, claims["on"]), latency(s, claims["off"])
		b.ReportMetric(on, "ms-journal")
		b.ReportMetric(off, "ms-without")
		b.ReportMetric(on-off, "ms-added")
		commits := commitsSince(s, claims["on"][0])
		b.ReportMetric(float64(len(commits))/lonelyClaims, "commits/volume")
		b.ReportMetric(median(commits), "ms-commit")
	}
}

// createLonely has a claim bound and waits until its journal entry is removed.
func createLonely(s *harness.Session, name, class string) types.UID {
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

// commitsSince returns how long the API server took for each write of the journal since
// the claim was created, sorted.
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
