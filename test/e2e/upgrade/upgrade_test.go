// Package upgrade replaces the last version of our controllers by this one, and back, while
// volumes are created and deleted.
package upgrade

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// waves of claims, each of which has so many, come before each change of the version.
const waves, size = 4, 50

// slow delays every third CreateVolume, so that calls are open when a provisioner ends.
const slow = `- {method: CreateVolume, every: 3, latency: 2s}`

// rig is a cluster in which one version of both programs runs at a time.
type rig struct {
	*harness.Session
	running []*sandbox.Process
	started int
	// kept are claims that their users keep.
	kept []string
}

// TestUpgradeAndDowngradeLoseNothing upgrades, goes back after a crash, and upgrades again, each
// time in the middle of a wave of claims. Users delete volumes and claims in both orders, and
// claims that wait for their volume.
func TestUpgradeAndDowngradeLoseNothing(t *testing.T) {
	t.Parallel()
	faults := filepath.Join(t.TempDir(), "faults.yaml")
	if err := os.WriteFile(faults, []byte(slow), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &rig{Session: harness.Own(t, harness.Setup{NoPrograms: true, DriverFlags: "--faults=" + faults}, harness.Within(5*harness.Timeout))}
	r.start(true)
	for wave, next := range []func(){
		func() { r.replace(false) },
		func() { r.crash(); r.start(true) },
		func() { r.replace(false) },
		func() {},
	} {
		r.createWave(wave)
		next()
		r.deleteWave(wave)
	}
	for wave := range waves {
		r.expectWaveGone(wave)
	}
	r.finishEntries()
	r.expectOnlyKept()
}

// start starts both programs of a version.
func (r *rig) start(last bool) {
	r.T.Helper()
	r.started++
	version := map[bool]string{true: "last", false: "new"}[last]
	name := fmt.Sprintf("%s-%d", version, r.started)
	loops, err := r.Plane.StartPVController(r.Ctx, sandbox.Controller{
		Name: "pv-controller-" + name, Last: last, HonorReclaimPolicy: true,
		Args: []string{"--leader-elect=true", "--leader-elect-retry-period=500ms"},
	})
	r.Must(err, "start pv-controller of the "+version+" version")
	r.running = append(r.running, loops)
	sidecar, err := r.Plane.StartProvisioner(r.Ctx, r.Driver, sandbox.Controller{
		Name: "provisioner-" + name, Last: last, HonorReclaimPolicy: true,
		Env:  []string{"NAMESPACE=" + deploy.Namespace, "POD_NAME=provisioner-" + name},
		Args: []string{"--leader-election", "--leader-election-namespace=" + deploy.Namespace, "--leader-election-retry-period=500ms"},
	})
	r.Must(err, "start provisioner of the "+version+" version")
	r.running = append(r.running, sidecar)
	r.T.Cleanup(func() { _, _ = loops.Kill(), sidecar.Kill() })
}

// replace starts another version and stops the running version, as a rollout does.
func (r *rig) replace(last bool) {
	r.T.Helper()
	before := r.running
	r.running = nil
	r.start(last)
	for _, process := range before {
		r.Must(process.Stop(r.Ctx), "stop "+process.Name())
	}
}

// crash kills both programs.
func (r *rig) crash() {
	r.T.Helper()
	for _, process := range r.running {
		r.Must(process.Kill(), "kill "+process.Name())
	}
	r.running = nil
}

// isRetained reports whether the claim has the policy Retain.
func isRetained(i int) bool { return i%5 == 4 }

func nameOf(wave, i int) string { return fmt.Sprintf("claim-%d-%02d", wave, i) }

// createWave creates the claims of a wave, and waits until the driver works on them.
func (r *rig) createWave(wave int) {
	r.T.Helper()
	before := r.CountDriverCalls(r.Driver, "CreateVolume")
	for i := range size {
		class := harness.DeleteClass
		if isRetained(i) {
			class = harness.RetainClass
		}
		r.CreateClaim(nameOf(wave, i), class)
	}
	r.Until("the driver works", func() bool { return r.CountDriverCalls(r.Driver, "CreateVolume") > before })
	for i := range 5 {
		r.DeleteClaim(nameOf(wave, i)) // perhaps before it has a volume
	}
}

// deleteWave deletes the claims of a wave but ten, half of those with the policy Delete after
// their volumes.
func (r *rig) deleteWave(wave int) {
	r.T.Helper()
	for i := 5; i < size; i++ {
		volume := r.AwaitBound(nameOf(wave, i))
		switch {
		case i >= size-10:
			r.kept = append(r.kept, nameOf(wave, i))
			continue
		case i%2 == 0 && !isRetained(i):
			r.DeleteVolume(volume.Name)
		}
		r.DeleteClaim(nameOf(wave, i))
	}
}

// expectWaveGone waits until the claims of a wave are gone, except the kept ones.
func (r *rig) expectWaveGone(wave int) {
	r.T.Helper()
	for i := range size - 10 {
		r.AwaitClaimGone(nameOf(wave, i))
	}
}

// finishEntries waits until the journal has no entry but those whose claims were deleted while the
// last version ran, and ends these as an administrator does.
func (r *rig) finishEntries() {
	r.T.Helper()
	r.Until("no request is open", func() bool { return len(r.entries(journal.KindActive)) == 0 })
	for _, claim := range r.entries(journal.KindUnresolved) {
		r.T.Logf("claim %s: the entry is unresolved", claim)
		r.exeunt("journal", "finish", "--yes", string(claim))
	}
	r.Until("no entry is left", func() bool {
		return len(r.entries(journal.KindActive))+len(r.entries(journal.KindUnresolved)) == 0
	})
}

// entries returns the claims of the journal's entries.
func (r *rig) entries(kind journal.Kind) []types.UID {
	r.T.Helper()
	list, err := r.Client.CoordinationV1().Leases(deploy.Namespace).List(r.Ctx, metav1.ListOptions{})
	r.Must(err, "list leases")
	of := journal.Journal{Namespace: deploy.Namespace, Driver: r.Driver.DriverName}
	var claims []types.UID
	for i := range list.Items {
		if is, _, ours := of.KindOf(&list.Items[i]); ours && is == kind {
			entries, unreadable := journal.Entries(&list.Items[i])
			claims = append(claims, unreadable...)
			for _, entry := range entries {
				claims = append(claims, entry.UID)
			}
		}
	}
	return claims
}

// exeunt runs the command-line program.
func (r *rig) exeunt(args ...string) {
	r.T.Helper()
	path, err := harness.Binaries().Path("exeunt")
	r.Must(err, "find exeunt")
	output, err := exec.CommandContext(r.Ctx, path, append(args, "--kubeconfig="+r.Plane.AdminKubeconfig)...).CombinedOutput()
	r.Must(err, fmt.Sprintf("exeunt %s: %s", strings.Join(args, " "), output))
}

// expectOnlyKept checks that the kept claims have their volumes, that only volumes with the policy
// Retain remain of the others, and that exactly these volumes have disks.
func (r *rig) expectOnlyKept() {
	r.T.Helper()
	r.Until("all volumes with policy Delete are reclaimed", func() bool {
		return !slices.ContainsFunc(r.volumes(), func(v v1.PersistentVolume) bool {
			return v.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete && v.Status.Phase != v1.VolumeBound
		})
	})
	recorded := map[string]bool{}
	for _, volume := range r.volumes() {
		recorded[volume.Spec.CSI.VolumeHandle] = true
	}
	for _, name := range r.kept {
		if volume := r.AwaitBound(name); volume.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete {
			r.ExpectFinalizer(volume, true)
		}
	}
	stored := r.disks()
	for handle := range recorded {
		if !slices.Contains(stored, handle) {
			r.T.Errorf("the disk %s of a volume is lost", handle)
		}
	}
	for _, handle := range stored {
		if !recorded[handle] {
			r.T.Errorf("the disk %s leaked", handle)
		}
	}
	r.expectNoOldFinalizer()
}

func (r *rig) volumes() []v1.PersistentVolume {
	r.T.Helper()
	list, err := r.Client.CoreV1().PersistentVolumes().List(r.Ctx, metav1.ListOptions{})
	r.Must(err, "list volumes")
	return list.Items
}

// disks returns the handles of all volumes of the driver.
func (r *rig) disks() []string {
	r.T.Helper()
	list, err := r.StorageClient().ListVolumes(r.Ctx, &spec.ListVolumesRequest{})
	r.Must(err, "list volumes of the storage system")
	if list.GetNextToken() != "" {
		r.T.Fatal("the list of the storage system has a second page")
	}
	var handles []string
	for _, entry := range list.GetEntries() {
		handles = append(handles, entry.GetVolume().GetVolumeId())
	}
	return handles
}

func (r *rig) expectNoOldFinalizer() {
	r.T.Helper()
	claims, err := r.Client.CoreV1().PersistentVolumeClaims(r.Namespace).List(r.Ctx, metav1.ListOptions{})
	r.Must(err, "list claims")
	for _, claim := range claims.Items {
		if finalizer.Has(claim.Finalizers, finalizer.Provisioning) {
			r.T.Errorf("claim %s has the finalizer of the last version", claim.Name)
		}
	}
}
