package programs

import (
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/faultproxy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// lateVolumes holds lists and watches of volumes back from when it is set until arrive is called.
type lateVolumes struct {
	atomic.Bool
	arrived chan struct{}
}

func (l *lateVolumes) wrap(forward http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.Load() && r.Method == http.MethodGet && r.URL.Path == "/api/v1/persistentvolumes" {
			select {
			case <-l.arrived:
			case <-r.Context().Done():
			}
		}
		forward.ServeHTTP(w, r)
	})
}

// The claims were bound after the backup. After the restore they are unbound, and their volumes are gone, but
// pv-controller, which runs on without leader election, has them in its cache until it lists volumes again. The name of
// a volume in a claim is for good: 19 of 100 claims were Lost.
func TestNoClaimIsLostBesideLateVolumes(t *testing.T) {
	t.Parallel()
	const count = 100
	s := harness.Own(t, harness.Setup{NoPrograms: true, Restarts: true}, harness.Within(2*harness.Timeout))
	late := &lateVolumes{arrived: make(chan struct{})}
	_, kubeconfig := s.NewFaultProxy(sandbox.PVControllerAccount,
		faultproxy.Config{Program: "pv-controller", Wrap: late.wrap})
	controller, err := s.Plane.StartPVController(s.Ctx,
		sandbox.Controller{HonorReclaimPolicy: true, Kubeconfig: kubeconfig})
	s.Must(err, "start pv-controller")
	s.Add(controller)
	for i := range count {
		s.CreateClaim(fmt.Sprintf("claim-%d", i), s.Namespace)
	}
	backup := filepath.Join(s.Dir, "backup")
	s.Must(s.Plane.Restart(s.Ctx, func() error { return s.Plane.SaveEtcd(backup) }), "save etcd")
	createVolumes(s, count)
	s.AwaitManyBound(count)

	late.Store(true)
	s.Must(s.Plane.Restart(s.Ctx, func() error { return s.Plane.RestoreEtcd(s.Ctx, backup, 1_000_000_000) }),
		"restore etcd")
	s.AwaitEvent(s.CreateClaim("last", ""), "FailedBinding") // pv-controller has looked at all other claims
	close(late.arrived)
	s.CreateClaim("next", "next")
	s.CreateVolume("next", v1.PersistentVolumeReclaimRetain,
		func(v *v1.PersistentVolume) { v.Spec.StorageClassName = "next" })
	s.AwaitBound("next") // pv-controller has listed the volumes
	expectNoneNamed(s, count)
	createVolumes(s, count)
	s.AwaitManyBound(count + 1)
}

func createVolumes(s *harness.Session, count int) {
	s.T.Helper()
	for i := range count {
		s.CreateVolume(fmt.Sprintf("disk-%d", i), v1.PersistentVolumeReclaimRetain)
	}
}

// expectNoneNamed checks that no claim but the next one names a volume.
func expectNoneNamed(s *harness.Session, count int) {
	s.T.Helper()
	claims, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "list claims")
	wrong := 0
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Name != "next" && (claim.Status.Phase == v1.ClaimLost || claim.Spec.VolumeName != "") {
			wrong++
		}
	}
	s.T.Logf("%d of %d claims are Lost, or name a volume that is gone", wrong, count)
	if wrong > 0 {
		s.T.Fatal("their volumeName cannot be changed any more")
	}
}
