package storage

import (
	"cmp"
	"strings"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// blockersOf returns the blockers of a judgment: one for each attachment, else one.
func (r *reclaimed) blockersOf(judgment volume.Judgment) []blocker.Blocker {
	if judgment.Reason == blocker.VolumeAttached {
		return r.attached
	}
	return []blocker.Blocker{r.blockerOf(judgment)}
}

// blockerOf returns the blocker of a judgment, with evidence and next step.
func (r *reclaimed) blockerOf(judgment volume.Judgment) blocker.Blocker {
	b := judged(r.blocker(r.finalizer), judgment, r.finding)
	commands, name := r.Commands(), r.typed.Name
	switch judgment.Reason {
	case blocker.DriverRefuses:
		b.Evidence = append(r.failure, b.Evidence...)
		b.Since = r.failedSince
		b.Next = cluster.Steps("mend what the error of "+r.provisionerOf()+" says. The deletion is retried",
			commands.Kubectl("", "describe", "pv", name)) + r.orKeep()
	case blocker.DriverMissing:
		b.Evidence = append(r.failure, b.Evidence...)
		if r.driver != "" && !strings.Contains(b.Holder, r.driver) { // several drivers have such a provisioner
			b.Holder += " of driver " + r.driver
		}
		b.Next = r.nextForMissingDriver(b.Next)
	case blocker.DriverDeletes:
		b.Evidence = append(r.failure, b.Evidence...)
		b.Next = cluster.Steps("wait: "+r.provisionerOf()+" is asked to delete the disk, and reports no error",
			nonEmpty(b.Next)...) + r.orKeep()
	case blocker.HandleShared:
		r.shared(&b)
	case blocker.SecretMissing:
		b.Holder = "the administrator of secret " + r.secret.namespace + "/" + r.secret.name
		b.Evidence = []blocker.Evidence{r.noSecret()}
		b.Next = cluster.Steps("create the secret again, with the credentials that the driver needs",
			commands.Kubectl(r.secret.namespace, "create", "secret", "generic", r.secret.name, "--from-env-file=FILE"))
	case blocker.JournalEntry:
		r.journal(&b)
	case blocker.NodeGone:
		r.nodeGone(&b)
	case blocker.FeatureOff:
		r.featureOff(&b)
	case blocker.PhaseNotReclaimed:
		r.failedPhase(&b)
	default: // the finding says all
	}
	if b.Next == "" {
		b.Next = cluster.Steps("look for the provisioner of "+r.provisionerOf(), commands.Kubectl("", "get", "csidriver"),
			commands.Kubectl("", "describe", "pv", name))
	}
	return b
}

func nonEmpty(next string) []string {
	if next == "" {
		return nil
	}
	return []string{next}
}

func (r *reclaimed) nextForMissingDriver(next string) string {
	if r.external != "" && next != "" { // its program is known
		return cluster.Steps(r.dataText()+" waits for the provisioner "+r.external+", which deletes the data once it runs",
			r.Commands().Kubectl("", "get", "pv", r.typed.Name)) + "\n" + next
	}
	if r.driver == "" {
		return cluster.Steps("no plugin can delete "+r.dataText()+
			", which stays in storage until somebody deletes it there. Find out whether the data is still wanted, and note its place",
			r.Commands().Kubectl("", "get", "pv", r.typed.Name, "-o", "yaml")) + "\n" + r.giveDiskUp()
	}
	return cluster.Steps(r.diskText()+" waits for the provisioner of driver "+r.driver+
		", which deletes the disk with its data once it runs",
		r.Commands().Kubectl("", "get", "csidriver", r.driver)) + "\n" +
		cmp.Or(next, cluster.Steps("install the driver again, with its provisioner"))
}

// dataText names what an in-tree plugin deletes.
func (r *reclaimed) dataText() string {
	switch spec := r.typed.Spec; {
	case spec.NFS != nil:
		return "the data in NFS directory " + spec.NFS.Server + ":" + spec.NFS.Path
	case spec.HostPath != nil:
		return "the data in directory " + spec.HostPath.Path + " of its node"
	}
	return r.diskText()
}

// diskText names the disk of the volume.
func (r *reclaimed) diskText() string {
	if csi := r.typed.Spec.CSI; csi != nil {
		return "disk " + csi.VolumeHandle
	}
	return "the disk of PersistentVolume " + r.typed.Name
}

func (r *reclaimed) journal(b *blocker.Blocker) {
	uid := string(r.typed.Spec.ClaimRef.UID)
	for _, one := range r.entries {
		if !one.unresolved {
			b.Evidence = append(b.Evidence, evidence(blocker.FromLease, "Lease %s has an open entry for claim UID %s", one.lease,
				uid))
			continue
		}
		b.Evidence = append(b.Evidence, evidence(blocker.FromLease, "Lease %s has an unresolved entry for claim UID %s: %s",
			one.lease, uid, one.reason))
	}
	b.Next = cluster.Steps("the provisioner ends the entry, then deletes the disk",
		r.Commands().Exeunt("", "journal", "list"))
}

func (r *reclaimed) featureOff(b *blocker.Blocker) {
	for _, container := range r.finding.Containers {
		b.Evidence = append(b.Evidence, evidence(blocker.FromWorkload, "%s runs %s", container.Workload,
			strings.Join(append([]string{container.Image}, container.Args...), " ")))
	}
	b.Next = cluster.Steps("run csi-provisioner v5.0 or later, or the provisioner of Exeunt, without HonorPVReclaimPolicy=false: it removes the finalizer once the disk is deleted",
		r.Commands().Kubectl("", "get", "pv", r.typed.Name, "-o", "jsonpath={.spec.csi.volumeHandle}"))
}

// tooLate returns the blocker of a volume that only the provisioner of Exeunt reclaims.
func (r *reclaimed) tooLate(judgment volume.Judgment, facts []blocker.Evidence) blocker.Blocker {
	b := judged(r.blocker(r.finalizer), judgment, r.finding)
	b.Evidence = append([]blocker.Evidence{evidence(blocker.FromField, "annotation %s is %s", reclaim.Annotation,
		reclaim.AnnotationPending)}, append(facts, b.Evidence...)...)
	b.Next = cluster.Steps("find out whether the data is still wanted. If so, set the policy Retain, and take the annotation off: the disk stays in storage. If not, run the provisioner of Exeunt for "+r.driver+" again: it deletes the disk",
		r.Commands().Kubectl("", "get", "pv", r.typed.Name, "-o", "yaml")) + "\n" + r.giveDiskUp()
	return b
}

// giveDiskUp returns the last resort of a volume whose disk nobody deletes.
func (c *volumeChain) giveDiskUp() string {
	commands, name := c.Commands(), c.typed.Name
	steps := []string{retain(commands, name)}
	if c.typed.DeletionTimestamp == nil {
		steps = append(steps, commands.Kubectl("", "delete", "pv", name))
	}
	return cluster.LastResort("the disk stays in storage unless you delete it", steps...)
}
