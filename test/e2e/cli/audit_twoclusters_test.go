package cli

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// recordAll creates a PersistentVolume of the session's driver for each handle in the
// cluster.
func recordAll(s *harness.Session, cluster *harness.Cluster, handles []string) {
	s.T.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i, handle := range handles {
		group.Go(func() error {
			volume := s.NewVolume("x", v1.PersistentVolumeReclaimRetain)
			volume.Name = fmt.Sprintf("%s-%06d", s.Namespace, i)
			volume.Spec.CSI.VolumeHandle = handle
			_, err := cluster.Client.CoreV1().PersistentVolumes().Create(s.Ctx, volume, metav1.CreateOptions{})
			return err
		})
	}
	s.Must(group.Wait(), "create PersistentVolumes")
}

func TestTwoClustersOnOneStorageSystem(t *testing.T) {
	const volumes, planted = 10000, 100
	s := harness.NewSession(t, harness.OwnCluster(t, harness.Setup{NoPrograms: true, DriverFlags: "--volumes=10000"}),
		harness.Within(5*time.Minute))
	second := harness.OwnCluster(t, bare)
	stored := handles(s)
	orphans := slices.Sorted(slices.Values(stored[:planted]))
	half := planted + (volumes-planted)/2
	recordAll(s, s.Cluster, stored[planted:half])
	recordAll(s, second, stored[half:])

	flags := []string{"--csi-address=" + s.Driver.Socket, "--kubeconfig=" + s.Plane.AdminKubeconfig,
		"--kubeconfig=" + second.Plane.AdminKubeconfig, "--settle=1s"}
	start := time.Now()
	done := runAudit(s, append(flags, "-o=json")...)
	t.Logf("%d volumes, two clusters: %s, peak %d KiB", volumes, time.Since(start), done.peak)
	found := decodeAudit(s, done)
	if !slices.Equal(found.orphans(), orphans) || !found.Enumerated ||
		len(found.Doubtful)+len(found.Incomplete)+len(found.Ghosts)+len(found.Shared) > 0 {
		t.Errorf("%d orphans, want %d; %d doubtful, incomplete %q", len(found.Orphans), planted, len(found.Doubtful),
			found.Incomplete)
	}
	text := runAudit(s, flags...)
	if head, _, _ := strings.Cut(text.output, "FINDING"); strings.Count(head, "https://") != 2 ||
		strings.Contains(head, "?") {
		t.Errorf("head: %s", head)
	}
	alone := runAudit(s, "--csi-address="+s.Driver.Socket, "--kubeconfig="+s.Plane.AdminKubeconfig, "--settle=0s")
	if !strings.HasPrefix(alone.output, "Does this cluster own the storage system?") {
		t.Errorf("output for one cluster:\n%.300s", alone.output)
	}
	expectNoDeletion(s)
}

// TestMemoryOfALargeAudit audits EXEUNT_AUDIT_VOLUMES volumes, each with a
// PersistentVolume but for ten.
func TestMemoryOfALargeAudit(t *testing.T) {
	count, limit := 2000, int64(100<<10)
	if set := os.Getenv("EXEUNT_AUDIT_VOLUMES"); set != "" {
		var err error
		if count, err = strconv.Atoi(set); err != nil {
			t.Fatal(err)
		}
	}
	s := harness.NewSession(t, harness.OwnCluster(t, harness.Setup{NoPrograms: true,
		DriverFlags: fmt.Sprintf("--volumes=%d", count)}), harness.Within(30*time.Minute))
	stored := handles(s)
	recordAll(s, s.Cluster, stored[10:])
	start := time.Now()
	done := runAudit(s, "--csi-address="+s.Driver.Socket, "--kubeconfig="+s.Plane.AdminKubeconfig, "--settle=0s",
		"-o=json")
	t.Logf("%d volumes and PersistentVolumes: %s, peak %d KiB", count, time.Since(start), done.peak)
	if found := decodeAudit(s, done); len(found.Orphans) != 10 {
		t.Errorf("report: %+v", found)
	}
	if done.peak == 0 || done.peak > limit {
		t.Errorf("peak memory %d KiB, want at most %d KiB", done.peak, limit)
	}
}
