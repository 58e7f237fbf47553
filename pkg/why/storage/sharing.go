package storage

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/disk"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// observeSharing searches all volumes for others on the disk, unless the volume is stuck for
// another reason anyway: clusters have tens of thousands of volumes.
func (r *reclaimed) observeSharing(ctx context.Context) {
	r.state.Shared = volume.No
	for _, judgment := range volume.Reclaim(r.state) {
		if judgment.Verdict == blocker.Stuck && judgment.Reason != blocker.DriverRefuses {
			return
		}
	}
	driver := disk.Driver{Name: r.driver, Translator: migration.New().For(r.driver)}
	all, seen := cluster.Volumes(ctx, r.Reader())
	for i := range all {
		if all[i].UID != r.typed.UID && driver.Same(r.typed, &all[i]) {
			r.sharing = append(r.sharing, all[i])
		}
	}
	r.state.Shared = volume.FactOf(len(r.sharing) > 0, seen)
}

// shared completes the blocker of a volume that the provisioner of Exeunt keeps for others on the disk.
func (r *reclaimed) shared(b *blocker.Blocker) {
	b.Holder = "PersistentVolume " + r.othersOnDisk()
	b.Evidence = []blocker.Evidence{r.sameDisk()}
	b.Next = r.keepForOthers("keep the disk for the other volume and give up this one; or delete the other volume first")
}

func (r *reclaimed) othersOnDisk() string {
	names := make([]string, len(r.sharing))
	for i := range r.sharing {
		names[i] = r.sharing[i].Name
	}
	return strings.Join(names, ", ")
}

// sameDisk returns the other volumes on the disk as evidence, with what becomes of them.
func (r *reclaimed) sameDisk() blocker.Evidence {
	others := make([]string, len(r.sharing))
	for i := range r.sharing {
		other := &r.sharing[i]
		others[i] = fmt.Sprintf("%s (phase %s, policy %s)", other.Name, other.Status.Phase,
			other.Spec.PersistentVolumeReclaimPolicy)
	}
	return evidence(blocker.FromList, "PersistentVolume %s has the same disk", strings.Join(others, ", "))
}

const policyRetain = `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`

// keepForOthers returns the step that keeps the disk for the other volumes. It is a comment if another
// volume would have the disk deleted as soon as this volume does not share it any more.
func (r *reclaimed) keepForOthers(sentence string) string {
	commands := r.Commands()
	var others, keeps []string
	show := commands.Kubectl("", append([]string{"get", "pv", r.typed.Name}, strings.Split(r.othersOnDisk(), ", ")...)...)
	for i := range r.sharing {
		if name := r.sharing[i].Name; !keepsDisk(&r.sharing[i]) {
			others = append(others, name)
			keeps = append(keeps, retain(commands, name))
		}
	}
	if len(others) == 0 {
		return cluster.Steps(sentence, show, retain(commands, r.typed.Name))
	}
	names := strings.Join(others, ", ")
	return cluster.Steps(sentence, show) + "\n" +
		cluster.Comments("first set Retain on "+names+", otherwise the disk is deleted for "+names+
			". Then give this volume up", append(keeps, retain(commands, r.typed.Name))...)
}

// retain returns the command that sets the policy Retain.
func retain(commands cluster.Commands, name string) string {
	return commands.Kubectl("", "patch", "pv", name, "-p", policyRetain)
}

// orKeep returns the same step for a volume whose driver is asked, "" if no other volume has the disk.
func (r *reclaimed) orKeep() string {
	if len(r.sharing) == 0 {
		return ""
	}
	return "\n" + r.keepForOthers("or keep the disk for the other volume, and give up this one")
}

// keepsDisk reports whether nothing deletes the disk of the volume now.
func keepsDisk(v *corev1.PersistentVolume) bool {
	return v.Status.Phase == corev1.VolumeBound ||
		v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
}

// unchecked returns as evidence for a blocker what only the provisioner of Exeunt checks before it
// calls the driver: a disk may be deleted with the data of another volume.
func (r *reclaimed) unchecked(reason blocker.Reason) []blocker.Evidence {
	if r.state.Server == volume.ServerOurs || reason == blocker.PhaseNotReclaimed {
		return nil
	}
	var all []blocker.Evidence
	if len(r.sharing) > 0 {
		if reason != blocker.HandleShared {
			all = append(all, r.sameDisk())
		}
		all = append(all, evidence(blocker.FromList,
			"csi-provisioner does not check this: the data of PersistentVolume %s is deleted, too", r.othersOnDisk()))
	}
	if r.state.Secret == volume.SecretMissing || r.state.Secret == volume.SecretMissingMaybe {
		if reason != blocker.SecretMissing {
			all = append(all, r.noSecret())
		}
		all = append(all, evidence(blocker.FromField,
			"csi-provisioner does not check this: the driver is called without the secret"))
	}
	if len(all) > 0 {
		all = append(all, r.served...)
	}
	return all
}

// noSecret returns as evidence that the secret of the deletion does not exist.
func (r *reclaimed) noSecret() blocker.Evidence {
	return evidence(blocker.FromField, "secret %s/%s, which the annotations of the volume name, does not exist",
		r.secret.namespace, r.secret.name)
}
