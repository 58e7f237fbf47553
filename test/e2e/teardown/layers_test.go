package teardown

import (
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

const (
	upperDriver    = "upper.csi.example.com"
	upperNamespace = "upper-system"
	upperClass     = "upper"
)

// layered is a CSI driver whose pods keep their data on volumes of the cluster's driver.
type layered struct {
	*rig
	upper *harness.Session
	// lower is the disk below the upper driver, data one of its volumes, database the disk of an ordinary pod.
	lower, data, database disk
}

func newLayered(t *testing.T, policy v1.PersistentVolumeReclaimPolicy) *layered {
	t.Helper()
	l := &layered{rig: newRig(t, harness.Setup{Teardown: true})}
	_, err := l.Client.CoreV1().Namespaces().Create(l.Ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: upperNamespace}},
		metav1.CreateOptions{})
	l.Must(err, "create namespace")
	l.upper = l.WithOwnDriver(upperDriver, "", "")
	l.upper.CreateClass(func(c *storagev1.StorageClass) { c.Name, c.ReclaimPolicy = upperClass, &policy })
	system := l.in(upperNamespace)
	l.lower = system.addDynamic("osd", harness.DeleteClass)
	_, err = system.Client.CoreV1().Pods(upperNamespace).Create(l.Ctx, driverPod("osd", "osd"), metav1.CreateOptions{})
	l.Must(err, "create a pod of the upper driver")
	l.data = (&rig{Session: l.upper}).addDynamic("data", upperClass)
	l.database = l.addDynamic("database", harness.DeleteClass)
	l.createUser("database", "database")
	l.createUser("reader", "data")
	return l
}

// in returns the rig in another namespace.
func (r *rig) in(namespace string) *rig {
	session := *r.Session
	session.Namespace = namespace
	return &rig{Session: &session, waits: r.waits}
}

// driverPod is a pod of the upper driver that uses a claim.
func driverPod(name, claim string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{NodeName: "node",
		TerminationGracePeriodSeconds: new(int64(1)),
		Containers: []v1.Container{{Name: "csi-provisioner", Image: "registry.example.com/csi-provisioner:v6",
			Args: []string{"--csi-address=/csi/csi.sock", "--driver-name=" + upperDriver}}},
		Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}}}
}

// Row 26: the upper driver can delete its volumes as long as its pods exist.
func TestDriverOnDisksEndsAfterItsVolumes(t *testing.T) {
	l := newLayered(t, v1.PersistentVolumeReclaimDelete)
	var ended time.Time
	var watching sync.WaitGroup
	watching.Go(func() {
		harness.Await(l.Session, &v1.Pod{}, harness.ObjectName{Resource: "pods", Namespace: upperNamespace, Name: "osd"},
			"is stopped", func(p *v1.Pod, exists bool) bool { return !exists || p.DeletionTimestamp != nil })
		ended = time.Now()
	})
	l.mustComplete()
	l.expectDisks(l.lower, l.database)
	if l.upper.IsStored(l.data.handle) {
		t.Error("the volume of the upper driver is left")
	}
	calls := l.upper.CountCalls("DeleteVolume", l.data.handle)
	if calls != 1 {
		t.Errorf("%d calls of DeleteVolume of the upper driver", calls)
	}
	watching.Wait()
	gone := l.volumeEnded(l.data.volume)
	if gone.IsZero() || !gone.Before(ended) {
		t.Errorf("the upper volume was gone at %s, its driver's pod ended from %s", gone, ended)
	}
}

// Row 08: a kept volume needs its driver's disks.
func TestDisksBelowKeptVolumesStay(t *testing.T) {
	l := newLayered(t, v1.PersistentVolumeReclaimRetain)
	l.mustComplete()
	l.expectDisks(keep(l.lower), l.database)
	if !l.upper.IsStored(l.data.handle) {
		t.Error("the kept volume of the upper driver is gone")
	}
}

// volumeEnded returns when a PersistentVolume was last written: its provisioner took its finalizer off.
func (r *rig) volumeEnded(name string) (at time.Time) {
	r.T.Helper()
	for _, e := range r.Requests() {
		if e.Resource == "persistentvolumes" && e.Name == name && e.Verb != "get" {
			at = e.Time
		}
	}
	return at
}
