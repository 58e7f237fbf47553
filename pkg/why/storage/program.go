package storage

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// look finds the controllers of the finalizer beside the driver, "" for none. Each of them
// may act.
func look(ctx context.Context, e chain.Explorer, name, kind, group, driver string) holder.Finding {
	controllers := controllersOf(name, kind, group)
	if len(controllers) == 0 {
		return holder.Finding{}
	}
	return e.Holders().LookAll(ctx, controllers, driver)
}

// controllersOf returns the controllers that may remove the finalizer.
func controllersOf(name, kind, group string) []families.Controller {
	family, known := families.Find(name, kind, group)
	if !known {
		return nil
	}
	return family.Controllers()
}

// provisioners returns the programs beside a CSI driver that create and delete volumes.
func provisioners() []families.Controller {
	return controllersOf(string(finalizer.External), "PersistentVolume", "")
}

// binders returns the programs that bind claims, and delete volumes of in-tree plugins.
func binders() []families.Controller {
	return controllersOf(string(finalizer.InTree), "PersistentVolume", "")
}

// sentBy returns the events that one of the controllers may have sent beside the driver: what another
// program says tells nothing of theirs.
func sentBy(events []corev1.Event, controllers []families.Controller, driver string) []corev1.Event {
	return slices.DeleteFunc(slices.Clone(events), func(event corev1.Event) bool {
		return !slices.ContainsFunc(controllers,
			func(c families.Controller) bool { return c.MaySend(cluster.Component(&event), driver) })
	})
}

// programs returns the containers that run and that fits selects.
func programs(finding holder.Finding, fits func(holder.Container) bool) []volume.Program {
	var all []volume.Program
	for _, container := range finding.Containers {
		if !container.Stopped && fits(container) {
			all = append(all, volume.Program{Image: container.Image, Args: container.Args})
		}
	}
	return all
}

func serves(container holder.Container) bool { return container.Serves }

// featureOf returns whether the provisioner serves the finalizer of KEP-2644. What a program
// says of which nothing tells the driver is no proof.
func featureOf(finding holder.Finding) volume.Feature {
	if known := programs(finding, serves); len(known) > 0 {
		return volume.FeatureOfAll(known)
	}
	guessed := programs(finding, func(container holder.Container) bool { return container.Guessed })
	if volume.FeatureOfAll(guessed) == volume.FeatureOff {
		return volume.FeatureOffMaybe
	}
	return volume.FeatureUnknown
}

// judged fills in what the judgment of the controller says.
func judged(b blocker.Blocker, judgment volume.Judgment, finding holder.Finding) blocker.Blocker {
	b.Reason, b.Verdict, b.Holder, b.Next = judgment.Reason, judgment.Verdict, finding.Holder, finding.Next
	b.Evidence = append(b.Evidence, finding.Evidence...)
	if judgment.Verdict == blocker.Stuck { // nothing blocks a deletion before it was asked for
		b.Since = max(b.Since, finding.Since)
	}
	return b
}

// releasedOnly is the evidence of a volume that csi-provisioner does not reclaim.
const releasedOnly = "csi-provisioner reclaims volumes in the phase Released only"

// unclaimed returns the blocker of the provisioner's finalizer on a deleted volume that names no claim.
func (c *volumeChain) unclaimed(ctx context.Context) blocker.Blocker {
	name := string(finalizer.External)
	finding := look(ctx, c, name, "PersistentVolume", "", c.driver)
	server, facts := serverOf(ctx, c, finding, c.driver)
	judgment := volume.RemoveUnclaimed(volume.UnclaimedState{Server: server, Feature: featureOf(finding),
		Provisioner: finding.State})
	b := judged(c.blocker(name), judgment, finding)
	if judgment.Reason != blocker.PhaseNotReclaimed {
		return b
	}
	b.Evidence = slices.Concat([]blocker.Evidence{
		evidence(blocker.FromField, "status.phase is %s, and spec.claimRef names no claim by UID: %s", c.typed.Status.Phase,
			releasedOnly),
	}, facts, b.Evidence)
	b.Next = cluster.Steps("note the handle of the disk, which stays in storage. Then run the provisioner of Exeunt for "+
		c.driver+", or set the policy Retain: either removes the finalizer",
		c.Commands().Kubectl("", "get", "pv", c.typed.Name, "-o", "yaml")) + "\n" + c.giveDiskUp()
	return b
}

// failedPhase completes the blocker of a Failed volume, which csi-provisioner does not reclaim.
func (r *reclaimed) failedPhase(b *blocker.Blocker) {
	phase := evidence(blocker.FromField, "status.phase is Failed, and %s", releasedOnly)
	b.Evidence = slices.Concat([]blocker.Evidence{phase}, r.failure, r.served, b.Evidence)
	b.Next = cluster.Steps("find out whether the data is still wanted. If so, set the policy Retain: the disk stays in storage. If not, run the provisioner of Exeunt for "+r.driver+": it deletes the disk of a Failed volume, too",
		r.Commands().Kubectl("", "get", "pv", r.typed.Name, "-o", "yaml")) + "\n" + r.giveDiskUp()
}

// isLate reports whether the volume was deleted before it got the provisioner's finalizer: the API
// server accepts no new finalizer on a deleted object.
func (c *volumeChain) isLate() bool {
	return c.driver != "" && c.typed.DeletionTimestamp != nil && !finalizer.Has(c.typed.Finalizers, finalizer.External) &&
		c.typed.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

// late returns what happens to the disk of a late volume once its claim is deleted, with the
// blocker of a disk that may stay behind.
func (c *volumeChain) late(ctx context.Context) (loss string, found []blocker.Blocker) {
	finding := look(ctx, c, string(finalizer.External), "PersistentVolume", "", c.driver)
	server, facts := serverOf(ctx, c, finding, c.driver)
	judgment := volume.Late(server)
	switch judgment.Verdict {
	case blocker.None:
		return "its policy is Delete: this deletes the data if pv-controller of Exeunt runs, too; without pv-controller the disk stays in storage", nil
	case blocker.Stuck:
		loss = "its policy is Delete, but the volume has no finalizer of the provisioner: the disk stays in storage, and no PersistentVolume names the disk any more"
	default:
		loss = "its policy is Delete, but the volume has no finalizer of the provisioner: the disk stays in storage unless provisioner and pv-controller of Exeunt run, which delete the disk"
	}
	b := judged(c.blocker(""), judgment, finding)
	b.Holder = "the provisioner of Exeunt for " + c.driver
	b.Evidence = slices.Concat([]blocker.Evidence{
		evidence(blocker.FromField,
			"the volume was deleted without the finalizer %s, and the API server accepts no new finalizer now",
			finalizer.External),
	}, facts, b.Evidence)
	b.Next = cluster.Steps("find out whether the data is still wanted, and note the handle of the disk. If the disk is to go, run provisioner and pv-controller of Exeunt before the claim goes: they delete the disk after the claim",
		c.Commands().Kubectl("", "get", "pv", c.typed.Name, "-o", "yaml"))
	return loss, []blocker.Blocker{b}
}
