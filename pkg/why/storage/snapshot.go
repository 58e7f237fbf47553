package storage

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// snapshots explains the finalizer of a claim that snapshots are taken from.
func (c *claimChain) snapshots(ctx context.Context) []blocker.Blocker {
	all, seen := cluster.List(ctx, c.Reader(), cluster.VolumeSnapshots, cluster.Selection{Namespace: c.typed.Namespace})
	var users []snapshotv1.VolumeSnapshot
	for i := range all {
		source := all[i].Spec.Source.PersistentVolumeClaimName
		if source != nil && *source == c.typed.Name && !isReady(&all[i]) {
			users = append(users, all[i])
		}
	}
	finding := look(ctx, c, snapshotSource, "PersistentVolumeClaim", "", "")
	s := volume.UseState{Used: volume.FactOf(len(users) > 0, seen), Error: volume.No, Remover: finding.State}
	facts := []blocker.Evidence{evidence(blocker.FromList, "no snapshot is being taken from the claim")}
	makers := holder.Finding{}
	if len(users) > 0 {
		facts, s.Error = c.snapshotFacts(users)
		makers = look(ctx, c, single.contentFinalizer, single.content, single.group, c.driver(ctx))
		s.Users = makers.State
	}
	b := judged(c.blocker(snapshotSource), volume.InUse(s, blocker.SnapshotRunning), reportedController(finding, makers))
	b.Evidence = append(facts, b.Evidence...)
	if len(users) > 0 && b.Reason == blocker.ControllerFails {
		b.Next = cluster.Steps("the snapshot cannot be taken: mend what its error says. The driver is asked again",
			c.Commands().Kubectl(users[0].Namespace, "describe", single.command, users[0].Name))
	}
	if len(users) == 0 || b.Reason != blocker.SnapshotRunning {
		return []blocker.Blocker{b}
	}
	return blockersOfUsers(ctx, c, b, objectsOf(c, snapshotv1.SchemeGroupVersion.String(), single.snapshot, users),
		user{resource: single.command, wait: "wait until the snapshot is ready", loss: "this gives the snapshot up"})
}

func isReady(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshot.Status != nil && snapshot.Status.ReadyToUse != nil && *snapshot.Status.ReadyToUse
}

// snapshotFacts returns what the snapshots that are being taken say, and whether one
// reports an error now.
func (c *claimChain) snapshotFacts(snapshots []snapshotv1.VolumeSnapshot) ([]blocker.Evidence, volume.Fact) {
	var facts []blocker.Evidence
	fails := volume.No
	for i := range snapshots {
		facts = append(facts, evidence(blocker.FromField, "VolumeSnapshot %s is taken from the claim, and is not ready", snapshots[i].Name))
		if status := snapshots[i].Status; status != nil && status.Error != nil && status.Error.Message != nil {
			facts = append(facts, evidence(blocker.FromField, "status.error of VolumeSnapshot %s: %s", snapshots[i].Name, *status.Error.Message))
			if status.Error.Time != nil && isRecent(c.Reader(), status.Error.Time.Time) && volume.IsRefusal(*status.Error.Message) {
				fails = volume.Yes
			}
		}
	}
	return facts, fails
}
