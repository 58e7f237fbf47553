package upstream_test

import (
	"testing"
	"testing/synctest"

	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/upstream"
)

const (
	volumes = "/api/v1/persistentvolumes/"
	claims  = "/api/v1/namespaces/shop/persistentvolumeclaims/"
	classes = "/apis/storage.k8s.io/v1/storageclasses"

	mainVolume = volumes + "pv"
	mainClaim  = claims + "c"
	// dynamic is the volume that the sidecar creates for the first claim c.
	dynamicName = "pvc-uid-persistentvolumeclaims-shop-c-1"
	dynamic     = volumes + dynamicName

	external   = "external-provisioner.volume.kubernetes.io/finalizer"
	protection = "kubernetes.io/pv-protection"
)

var (
	gateOn  = process.Options{Honor: true}
	gateOff = process.Options{}
)

// pair is a world with the programs of upstream and a class for each policy.
func pair(t *testing.T, options process.Options, provisioner process.Build) *world {
	t.Helper()
	w := newWorld(t, options, upstream.Controllers, provisioner)
	for name, policy := range map[string]string{"delete": "Delete", "retain": "Retain"} {
		w.post(
			classes, `{"metadata":{"name":"`+name+`"},"provisioner":"`+process.DriverName+`","reclaimPolicy":"`+policy+`"}`,
		)
	}
	return w
}

func (w *world) createVolume(name, policy string) {
	w.t.Helper()
	w.createVolumeOf(name, policy, "disk-"+name)
}

func (w *world) createVolumeOf(name, policy, handle string) {
	w.t.Helper()
	w.disks[handle] = true
	w.post("/api/v1/persistentvolumes", `{"metadata":{"name":"`+name+
		`"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},
		"persistentVolumeReclaimPolicy":"`+policy+`","csi":{"driver":"`+process.DriverName+`","volumeHandle":"`+handle+`"}}}`)
}

func (w *world) createClaim(name, class string) {
	w.t.Helper()
	w.post("/api/v1/namespaces/shop/persistentvolumeclaims", `{"metadata":{"name":"`+name+
		`"},"spec":{"accessModes":["ReadWriteOnce"],
		"resources":{"requests":{"storage":"1Gi"}},"storageClassName":"`+class+`"}}`)
}

// expect compares fields of the objects at the path.
func (w *world) expect(path string, fields map[string]string) {
	w.t.Helper()
	for field, want := range fields {
		if got := w.at(path, field); got != want {
			w.t.Errorf("%s: %s is %q, want %q", path, field, got, want)
		}
	}
}

func TestStaticVolumeIsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pair(t, gateOn, upstream.Sidecar)
		w.createVolume("large", "Retain")
		w.patch(volumes+"large", `{"spec":{"capacity":{"storage":"9Gi"}}}`)
		w.createVolume("pv", "Delete")
		w.settle()
		w.expect(mainVolume, map[string]string{"status/phase": "Available", "metadata/finalizers": "[" + protection + "]"})
		w.createClaim("c", "")
		w.settle()
		w.expect(mainVolume, map[string]string{
			"status/phase": "Bound", "spec/claimRef/name": "c", "metadata/finalizers": "[" + protection + " " + external + "]",
			"metadata/annotations": "map[pv.kubernetes.io/bound-by-controller:yes]",
		})
		w.expect(mainClaim, map[string]string{
			"status/phase": "Bound", "spec/volumeName": "pv", "status/capacity/storage": "1Gi",
			"metadata/annotations": "map[pv.kubernetes.io/bind-completed:yes pv.kubernetes.io/bound-by-controller:yes]",
		})
		w.expect(volumes+"large", map[string]string{"status/phase": "Available"})
	})
}

func TestVolumeIsProvisionedAndBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pair(t, gateOn, upstream.Sidecar)
		w.createClaim("c", "delete")
		w.settle()
		w.expect(dynamic, map[string]string{
			"status/phase": "Bound", "spec/claimRef/name": "c", "spec/csi/volumeHandle": "disk-" + dynamicName,
			"metadata/finalizers": "[" + external + " " + protection + "]",
		})
		w.expect(mainClaim, map[string]string{
			"status/phase": "Bound", "spec/volumeName": dynamicName,
			"metadata/annotations": "map[pv.kubernetes.io/bind-completed:yes pv.kubernetes.io/bound-by-controller:yes " +
				"volume.beta.kubernetes.io/storage-provisioner:" + process.DriverName +
				" volume.kubernetes.io/storage-provisioner:" + process.DriverName + "]",
		})
	})
}

func TestReclaim(t *testing.T) {
	for name, tc := range map[string]struct {
		options process.Options
		class   string
		first   string // the object deleted before the claim, or after for "claim"
		gone    bool   // the volume is gone
		disk    bool   // the disk is left
	}{
		"Delete, claim":                              {gateOn, "delete", "", true, false},
		"Delete, volume then claim":                  {gateOn, "delete", dynamic, true, false},
		"Retain, claim":                              {gateOn, "retain", "", false, true},
		"Retain, volume then claim":                  {gateOn, "retain", dynamic, true, true},
		"gate off, Delete, claim":                    {gateOff, "delete", "", true, false},
		"gate off, Delete, volume then claim: leaks": {gateOff, "delete", dynamic, true, true},
		"gate off, Retain, volume then claim":        {gateOff, "retain", dynamic, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := pair(t, tc.options, upstream.Sidecar)
				w.createClaim("c", tc.class)
				w.settle()
				w.expect(mainClaim, map[string]string{"status/phase": "Bound"})
				if tc.first != "" {
					w.delete(tc.first)
					w.settle()
				}
				w.delete(mainClaim)
				w.settle()
				if w.read(mainClaim) != nil {
					t.Error("the claim is left")
				}
				if gone := w.read(dynamic) == nil; gone != tc.gone {
					t.Errorf("volume gone: %v, want %v", gone, tc.gone)
				}
				if disk := len(w.disks) > 0; disk != tc.disk {
					t.Errorf("disk left: %v, want %v", disk, tc.disk)
				}
			})
		})
	}
}
