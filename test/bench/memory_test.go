package bench

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// The number of pairs of volume and claim in the cluster, and of pairs of the driver.
const (
	memoryPairs = 50_000
	memoryOwn   = 1_000
	// memoryBound is the memory limit of our provisioner.
	memoryBound = 80_000_000
	// memoryTimeout bounds the whole benchmark.
	memoryTimeout = 20 * time.Minute
)

// BenchmarkMemory reports the peak memory of each program from its start in a full cluster
// until it has created and deleted volumes: VmHWM in /proc/PID/status, which includes the
// pages of the executable.
//
//	go test ./test/bench -run xxx -bench Memory -benchtime 1x -timeout 30m
func BenchmarkMemory(b *testing.B) {
	s := harness.Own(b, harness.Setup{NoPrograms: true}, harness.Within(memoryTimeout))
	began := time.Now()
	fill(s)
	b.Logf("%d pairs of volume and claim were created in %s", memoryPairs, time.Since(began).Round(time.Second))
	b.Run("ours", func(b *testing.B) {
		for b.Loop() {
			measureMemory(b, s.Cluster, harness.Setup{})
		}
	})
	b.Run("upstream", func(b *testing.B) {
		for b.Loop() {
			measureMemory(b, s.Cluster, harness.Setup{UpstreamLoops: true, UpstreamSidecar: true})
		}
	})
}

// measureMemory runs the programs of the setup under some load.
func measureMemory(b *testing.B, c *harness.Cluster, how harness.Setup) {
	s := harness.NewSession(b, c, harness.Within(memoryTimeout))
	s.Must(c.StartPrograms(s.Ctx, how), "start programs")
	turnOver(harness.NewSession(b, c))
	for _, process := range c.Processes {
		peak := peakMemory(s, process)
		b.ReportMetric(float64(peak)/1e6, "MB-"+process.Name())
		if process == c.Provisioner && !how.UpstreamSidecar && peak > memoryBound {
			b.Errorf("%s took %d bytes, want at most %d", process.Name(), peak, memoryBound)
		}
		s.Must(process.Stop(s.Ctx), "stop "+process.Name())
	}
	c.Processes = nil
}

// turnOver creates and deletes some volumes.
func turnOver(s *harness.Session) {
	for i := range 100 {
		s.CreateClaim(fmt.Sprint("claim-", i), harness.DeleteClass)
	}
	volumes := s.AwaitManyBound(100)
	for _, volume := range volumes {
		s.DeleteVolume(volume)
	}
	s.Must(s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).DeleteCollection(s.Ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), "delete claims")
	s.AwaitManyGone(volumes)
}

// fill creates bound pairs, as in a cluster in use.
func fill(s *harness.Session) {
	s.T.Helper()
	var group errgroup.Group
	group.SetLimit(64)
	for i := range memoryPairs {
		provisioner := "csi.somebody-else.example.com"
		if i%(memoryPairs/memoryOwn) == 0 {
			provisioner = s.Driver.DriverName
		}
		group.Go(func() error { return makePair(s, provisioner) })
	}
	s.Must(group.Wait(), "fill the cluster")
}

func makePair(s *harness.Session, provisioner string) error {
	claims := s.Client.CoreV1().PersistentVolumeClaims(metav1.NamespaceDefault)
	volumes := s.Client.CoreV1().PersistentVolumes()
	claim, err := claims.Create(s.Ctx, newClaim(provisioner), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	volume, err := volumes.Create(s.Ctx, newVolume(claim, provisioner), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	volume.Status.Phase = v1.VolumeBound
	if _, err = volumes.UpdateStatus(s.Ctx, volume, metav1.UpdateOptions{}); err != nil {
		return err
	}
	bind := fmt.Appendf(nil, `{"spec":{"volumeName":%q}}`, volume.Name)
	if claim, err = claims.Patch(s.Ctx, claim.Name, types.MergePatchType, bind, metav1.PatchOptions{}); err != nil {
		return err
	}
	claim.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimBound, AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests}
	_, err = claims.UpdateStatus(s.Ctx, claim, metav1.UpdateOptions{})
	return err
}

func newClaim(provisioner string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "data-of-some-stateful-set-",
			Finalizers:   []string{string(finalizer.ClaimProtection)},
			Labels:       map[string]string{"app.kubernetes.io/name": "database", "app.kubernetes.io/instance": "of-somebody"},
			Annotations: map[string]string{
				storage.AnnStorageProvisioner: provisioner, storage.AnnBetaStorageProvisioner: provisioner,
				storage.AnnBindCompleted: "yes", storage.AnnBoundByController: "yes",
			},
		},
		Spec: v1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To("some-class"), AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// newVolume returns a volume that refers to the claim.
func newVolume(claim *v1.PersistentVolumeClaim, provisioner string) *v1.PersistentVolume {
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "pvc-" + string(claim.UID),
			Finalizers:  []string{string(finalizer.VolumeProtection), string(finalizer.External)},
			Annotations: map[string]string{storage.AnnDynamicallyProvisioned: provisioner},
		},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: v1.PersistentVolumeReclaimDelete,
			StorageClassName:              "some-class", AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests,
			ClaimRef: &v1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name,
				UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
				Driver: provisioner, VolumeHandle: "volume-of-" + string(claim.UID), FSType: "ext4",
				VolumeAttributes: map[string]string{"storage.kubernetes.io/csiProvisionerIdentity": "1756400000000-8081-" + provisioner},
			}},
		},
	}
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peakMemory returns the peak memory of the process in bytes.
func peakMemory(s *harness.Session, process *sandbox.Process) int {
	s.T.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process.PID()))
	s.Must(err, "read status of "+process.Name())
	found := highWater.FindSubmatch(status)
	if found == nil {
		s.T.Fatalf("the status of %s has no VmHWM", process.Name())
	}
	kilobytes, err := strconv.Atoi(string(found[1]))
	s.Must(err, "read VmHWM")
	return kilobytes * 1024
}
