package storage

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// keepForClaim makes Retain the one next step of a volume whose disk is to be deleted while the
// spec.volumeName of another claim names the volume: the user of that claim expects the data, and
// whatever lets the driver act deletes it.
func (c *volumeChain) keepForClaim(ctx context.Context, all []blocker.Blocker) []blocker.Blocker {
	claim := c.claimNaming(ctx)
	if claim == "" {
		return all
	}
	for i := range all {
		all[i].Evidence = append(all[i].Evidence, evidence(blocker.FromField, "spec.volumeName of claim %s names the volume", claim))
		all[i].Next = cluster.Steps("claim "+claim+" names the volume, whose disk is to be deleted with its data: first keep the disk, then look again",
			retain(c.Commands(), c.typed.Name), c.Commands().Exeunt("", "why", "pv/"+c.typed.Name))
	}
	return all
}

// claimNaming returns namespace/name of a claim, not the volume's, that names the volume, "" for none.
func (c *volumeChain) claimNaming(ctx context.Context) string {
	for _, claim := range claimsByVolume(ctx, c)[c.typed.Name] {
		if own := c.typed.Spec.ClaimRef; own == nil || own.UID != claim.UID {
			return claim.Namespace + "/" + claim.Name
		}
	}
	return ""
}

// claimsByVolume returns the claims by the volume that they name. They are read once.
func claimsByVolume(ctx context.Context, e chain.Explorer) map[string][]corev1.ObjectReference {
	return cluster.Remember(e.Reader(), "claims by volume", func(r *cluster.Reader) map[string][]corev1.ObjectReference {
		all := map[string][]corev1.ObjectReference{}
		cluster.Each(ctx, r, cluster.PersistentVolumeClaims, cluster.Selection{}, func(page []corev1.PersistentVolumeClaim) {
			for i := range page {
				claim := &page[i]
				if name := claim.Spec.VolumeName; name != "" && claim.DeletionTimestamp == nil {
					all[name] = append(all[name], corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID})
				}
			}
		})
		return all
	})
}
