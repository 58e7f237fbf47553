package manifests

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

func csiSource(driver string) v1.PersistentVolumeSource {
	return v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "handle"}}
}

// No controller runs, so only the admission policy adds finalizers. The documented command
// lists the driver csimock.exeunt.io.
func TestAdmissionPolicyFollowsItsList(t *testing.T) {
	server := startServer(t)
	for _, object := range applied(t, []string{"kubectl", "apply", "-f", "deploy/admission/policy.yaml", "-f",
		"deploy/admission/drivers.yaml"}) {
		server.prepareNamespace(t, object)
		if err := server.apply(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	volumes := server.createVolumes(t)
	server.awaitFinalizer(t, "host-path", finalizer.InTree) // the policy is in force, with an empty list
	for name := range volumes {
		if got := server.setDelete(t, name); name != "host-path" && got != "" {
			t.Errorf("with an empty list %s gets the finalizer %s", name, got)
		}
	}
	for _, line := range kubectlLines(t, "patch configmap exeunt-drivers") {
		if _, err := server.kubectl(t, line); err != nil {
			t.Fatal(err)
		}
	}
	server.awaitFinalizer(t, "listed", finalizer.External)
	for name, want := range volumes {
		if got := server.setDelete(t, name); got != want {
			t.Errorf("%s gets the finalizer %q, want %q", name, got, want)
		}
	}
	server.expectFinalizerInPhases(t)
	if _, err := server.kubectl(t, "kubectl -n exeunt-system delete configmap exeunt-drivers"); err != nil {
		t.Fatal(err)
	}
	server.awaitFinalizer(t, "listed", "")
	for name := range volumes {
		if got := server.setDelete(t, name); got != "" {
			t.Errorf("without the list %s gets the finalizer %s", name, got)
		}
	}
}

// createVolumes creates volumes with policy Retain, and returns which finalizer each gets with policy Delete
// while its driver is listed.
func (s *server) createVolumes(t *testing.T) map[string]finalizer.Name {
	t.Helper()
	hostPath := v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/tmp/volume"}}
	expected := map[string]finalizer.Name{
		"listed": finalizer.External, "listed-static": finalizer.External, "unlisted": "", "host-path": finalizer.InTree,
		"released": finalizer.External, "failed": finalizer.External, "available": "",
	}
	for name, phase := range map[string]v1.PersistentVolumePhase{
		"listed": v1.VolumeBound, "listed-static": v1.VolumeBound, "released": v1.VolumeReleased, "failed": v1.VolumeFailed,
		"available": v1.VolumeAvailable,
	} {
		s.createVolume(t, name, csiSource("csimock.exeunt.io"), v1.PersistentVolumeReclaimRetain, phase)
	}
	s.createVolume(t, "unlisted", csiSource("other.example.com"), v1.PersistentVolumeReclaimRetain, v1.VolumeBound)
	s.createVolume(t, "host-path", hostPath, v1.PersistentVolumeReclaimRetain, v1.VolumeBound)
	s.annotate(t, "listed", "csimock.exeunt.io")
	s.annotate(t, "unlisted", "other.example.com")
	s.annotate(t, "host-path", "kubernetes.io/host-path")
	return expected
}

// expectFinalizerInPhases writes each phase to a volume with policy Delete of a listed driver.
func (s *server) expectFinalizerInPhases(t *testing.T) {
	t.Helper()
	for phase, want := range map[v1.PersistentVolumePhase]bool{
		v1.VolumeBound: true, v1.VolumeReleased: true, v1.VolumeFailed: true, v1.VolumeAvailable: false,
		v1.VolumePending: false,
	} {
		name := "becomes-" + strings.ToLower(string(phase))
		s.createVolume(t, name, csiSource("csimock.exeunt.io"), v1.PersistentVolumeReclaimDelete, phase)
		if got := slices.Contains(s.patchVolume(t, name, "{}").Finalizers, string(finalizer.External)); got != want {
			t.Errorf("a volume with policy Delete that becomes %s gets the finalizer: %t, want %t", phase, got, want)
		}
	}
}

// annotate sets the provisioner annotation of a volume.
func (s *server) annotate(t *testing.T, volume, provisioner string) {
	t.Helper()
	s.patchVolume(t, volume, `{"metadata":{"annotations":{"pv.kubernetes.io/provisioned-by":"`+provisioner+`"}}}`)
}

// setDelete sets the policy of a volume from Retain to Delete, and returns the finalizer
// that this write added.
func (s *server) setDelete(t *testing.T, volume string) finalizer.Name {
	t.Helper()
	s.patchVolume(t, volume, `{"metadata":{"finalizers":null},"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)
	changed := s.patchVolume(t, volume, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
	for _, name := range []finalizer.Name{finalizer.External, finalizer.InTree} {
		if slices.Contains(changed.Finalizers, string(name)) {
			return name
		}
	}
	return ""
}

// awaitFinalizer waits until the cached policy adds this finalizer.
func (s *server) awaitFinalizer(t *testing.T, volume string, want finalizer.Name) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			return s.setDelete(t, volume) == want, nil
		})
	if err != nil {
		t.Fatalf("wait until %s gets the finalizer %q: %v", volume, want, err)
	}
}

func (s *server) patchVolume(t *testing.T, volume, body string) *v1.PersistentVolume {
	t.Helper()
	volumes := kubernetes.NewForConfigOrDie(s.config).CoreV1().PersistentVolumes()
	changed, err := volumes.Patch(t.Context(), volume, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	if err != nil {
		t.Fatalf("patch %s: %v", volume, err)
	}
	return changed
}
