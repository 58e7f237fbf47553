package model

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/upstream"
)

// KnownBug is a bug that the model has to find: in upstream's programs, or in ours without what
// prevents it.
type KnownBug struct {
	Name string
	// Config shows the bug. Rules are the rules of which it breaks at least one.
	Config Config
	Rules  []string
	// Ours is the same world with our programs, in which nothing is wrong; nil where our
	// programs do not run.
	Ours func(Config) Config
}

// leak are the rules that a leaked disk breaks.
var leak = []string{"Leaked"}

// KnownBugs returns the bugs by name.
func KnownBugs() []KnownBug {
	return []KnownBug{
		{"KEP-2644 step 9: pv-protection goes before the plugin deletes", hostPath(), leak, nil},
		{"KEP-2644 step 10: the plugin finds a deletionTimestamp", hostPath(foreignFinalizer), leak, nil},
		{
			"KEP-2644 step 11: the sidecar finds a deletionTimestamp",
			upstreamPair(dynamic(v1.PersistentVolumeReclaimDelete).gateOff()), leak, ours,
		},
		{
			"KEP-2644 step 11 with our programs and the gate off", dynamic(v1.PersistentVolumeReclaimDelete).gateOff(), leak,
			ours,
		},
		{
			"external-provisioner#486: a crash between CreateVolume and the PersistentVolume",
			upstreamPair(dynamic(v1.PersistentVolumeReclaimDelete)).crash(), leak, ours,
		},
		{"external-provisioner#1469: CreateVolume while the volume is deleted", createdWhileDeleted(), leak, ours},
		{
			"external-provisioner#1217: the finalizer is removed in the cache only",
			sidecar(dynamic(v1.PersistentVolumeReclaimDelete), upstream.OldSidecar).fail(), []string{"StuckVolume"}, ours,
		},
		{"policy Delete and deletion at once, without finalizer", upstreamPair(policyBeforeDeletion()), leak, nil},
		{"two volumes of one disk", upstreamPair(twoVolumes()), []string{"DataLost"}, ours},
		{"Retain just before DeleteVolume, unseen", upstreamPair(retained()), []string{"DataLost"}, ours},
	}
}

// ours runs our programs in the world, with the gate on.
func ours(c Config) Config {
	programs := []Program{pvController(), provisioner()}
	for i := range programs {
		programs[i].Concurrent = c.Programs[i].Concurrent
	}
	c.Programs, c.Upstream, c.Admission = programs, false, true
	return c
}

// upstreamPair runs upstream's programs, with the gates of the configuration.
func upstreamPair(c Config) Config { return sidecar(c, upstream.Sidecar) }

func sidecar(c Config, build process.Build) Config {
	honor := c.Programs[0].Honor
	c.Programs, c.Upstream, c.Admission = []Program{upstreamLoops(), upstreamProvisioner(build)}, true, false
	for i := range c.Programs {
		c.Programs[i].Honor = honor
	}
	return c
}

// requested is a claim whose volume is requested from the provisioner. A user deletes the claim.
func requested(name string) Config {
	claim := newClaim("data", class)
	claim.object.(*v1.PersistentVolumeClaim).Annotations = map[string]string{
		storage.AnnStorageProvisioner: process.DriverName, storage.AnnBetaStorageProvisioner: process.DriverName,
	}
	c := base(name, newClass(v1.PersistentVolumeReclaimDelete), claim)
	c.Users = []UserAction{deleteClaim("data")}
	return c
}

// createdWhileDeleted is a claim whose volume the sidecar sees late, so that its claim loop calls
// CreateVolume again while its volume loop deletes the volume.
func createdWhileDeleted() Config {
	c := upstreamPair(requested("CreateVolume while the volume is deleted"))
	c.Programs[1].Concurrent = true
	c.Interruptions, c.Stalls = 1, 1
	c.Stalling = []string{"persistentvolumes"}
	return c
}

// foreignFinalizer is a finalizer of another program.
func foreignFinalizer(volume *v1.PersistentVolume) {
	volume.Finalizers = append(volume.Finalizers, "example.com/backup")
}

// hostPath is a volume of an in-tree plugin, which only upstream's loops have here.
func hostPath(change ...func(*v1.PersistentVolume)) Config {
	volume := newVolume("disk", v1.PersistentVolumeReclaimDelete, append(change, func(volume *v1.PersistentVolume) {
		volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{
			HostPath: &v1.HostPathVolumeSource{Path: "/tmp/disk-of-disk"},
		}
	})...)
	c := base("host-path", volume, newClaim("data", ""))
	c.Disks, c.Users = []string{"/tmp/disk-of-disk"}, []UserAction{deleteVolume("disk"), deleteClaim("data")}
	loops := upstreamLoops()
	loops.Honor = false
	c.Programs, c.Upstream, c.Admission = []Program{loops}, true, false
	return c
}

// policyBeforeDeletion sets the policy Delete and deletes the volume before its claim.
func policyBeforeDeletion() Config {
	c := static(v1.PersistentVolumeReclaimRetain)
	c.Users = append([]UserAction{setPolicy("disk", v1.PersistentVolumeReclaimDelete)}, c.Users...)
	return c
}

// retained sets the policy Retain at any time before the disk is deleted.
func retained() Config {
	c := base(
		"policy becomes Retain", newVolume("disk", v1.PersistentVolumeReclaimDelete, provisionedBy), newClaim("data", ""),
	)
	c.Disks = []string{"disk-of-disk"}
	c.Users = []UserAction{deleteClaim("data"), setPolicy("disk", v1.PersistentVolumeReclaimRetain)}
	c.Stalls = 1
	return c
}

// twoVolumes are two volumes of one disk, with a claim each.
func twoVolumes() Config {
	same := func(volume *v1.PersistentVolume) { volume.Spec.CSI.VolumeHandle = "disk-of-disk" }
	c := base("two volumes of one disk",
		newVolume("disk", v1.PersistentVolumeReclaimDelete, same, provisionedBy, claimedBy("data")),
		newVolume("twin", v1.PersistentVolumeReclaimDelete, same, provisionedBy, claimedBy("other")),
		newClaim("data", ""), newClaim("other", ""))
	c.Disks, c.Users = []string{"disk-of-disk"}, []UserAction{deleteClaim("data")}
	return c
}
