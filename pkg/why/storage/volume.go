package storage

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// attacherPrefix begins the finalizer of external-attacher, which ends in the driver's name.
const attacherPrefix = "external-attacher/"

// volumeChain explains one PersistentVolume.
type volumeChain struct {
	subject[corev1.PersistentVolume]
	// driver is the CSI driver that deletes the disk, "" for none.
	driver string
	// external is the provisioner without a CSI driver that deletes the disk, "" for an in-tree plugin.
	external string
	claim    *unstructured.Unstructured // nil if absent or unseen
	stage    volume.Stage
}

// explainVolume returns what the deletion of a PersistentVolume waits for.
func explainVolume(ctx context.Context, e chain.Explorer, object *unstructured.Unstructured) []blocker.Blocker {
	s, ok := newSubject[corev1.PersistentVolume](e, object)
	if !ok {
		return chain.FinalizerBlockers(ctx, e, object)
	}
	c := &volumeChain{subject: s, driver: driverOf(s.typed)}
	if name := s.typed.Annotations[storage.AnnDynamicallyProvisioned]; c.driver == "" && families.IsProvisioner(name) {
		c.external = name
	}
	c.stage = volume.StageOf(c.observe(ctx))
	switch c.stage {
	case volume.Kept:
		if s.typed.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRecycle {
			return nil // scrubbed and made Available, or Failed: no deletion
		}
		return []blocker.Blocker{c.retained()}
	case volume.Claimed:
		return append(c.claimed(ctx), c.others(ctx)...)
	case volume.ClaimUnseen:
		return append([]blocker.Blocker{c.claimUnseen()}, c.others(ctx)...)
	case volume.ToRelease:
		if c.keeper() == "" {
			break
		}
		return append([]blocker.Blocker{c.Finalizer(ctx, object, string(finalizer.VolumeProtection))}, c.others(ctx)...)
	case volume.ToReclaim:
		return c.toReclaim(ctx)
	case volume.Unclaimed, volume.ToUnprotect:
	}
	return c.finalizers(ctx, c.attacherFinalizer(ctx))
}

// driverOf returns the CSI driver that deletes the disk of the volume, "" for none.
func driverOf(v *corev1.PersistentVolume) string {
	if driver := v.Annotations[storage.AnnMigratedTo]; driver != "" {
		return driver
	}
	if v.Spec.CSI != nil {
		return v.Spec.CSI.Driver
	}
	if finalizer.Has(v.Finalizers, finalizer.InTree) { // kept by a plugin, so not migrated
		return ""
	}
	driver, _ := migration.New().Driver(migration.New().PluginOf(v))
	return driver
}

// observe reads the claim of the volume.
func (c *volumeChain) observe(ctx context.Context) volume.State {
	v := c.typed
	return volume.State{
		Policy: storage.PolicyOf(v.Spec.PersistentVolumeReclaimPolicy), Phase: storage.PhaseOf(v.Status.Phase),
		Deleting: v.DeletionTimestamp != nil, Claim: c.readClaim(ctx),
		Marked: finalizer.Has(v.Finalizers, finalizer.External) || finalizer.Has(v.Finalizers, finalizer.InTree) ||
			reclaim.StatusOf(v) == reclaim.StatusPending,
	}
}

// readClaim reads the claim and returns its relation to the volume.
func (c *volumeChain) readClaim(ctx context.Context) storage.ClaimRelation {
	ref := c.typed.Spec.ClaimRef
	if unread := storage.UnreadClaim(c.typed); unread != storage.ClaimUnread {
		return unread
	}
	resource := cluster.Ref{
		Resource: corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), Kind: "PersistentVolumeClaim",
		Namespace: ref.Namespace, Name: ref.Name,
	}
	object, presence, _ := c.Reader().Live(ctx, resource)
	if presence == cluster.Unseen {
		return storage.ClaimUnread
	}
	if object == nil {
		return storage.ClaimOf(c.typed, nil)
	}
	claim, ok := newSubject[corev1.PersistentVolumeClaim](c, object)
	if !ok {
		return storage.ClaimUnread
	}
	if ref.UID == object.GetUID() { // another claim of the name is not the volume's
		c.claim = object
	}
	return storage.ClaimOf(c.typed, claim.typed)
}

// keeper returns the finalizer that keeps the volume until its disk is deleted, else
// pv-protection, "" for none.
func (c *volumeChain) keeper() string {
	for _, name := range []finalizer.Name{finalizer.External, finalizer.InTree, finalizer.VolumeProtection} {
		if finalizer.Has(c.typed.Finalizers, name) {
			return string(name)
		}
	}
	return ""
}

// others returns the blockers of the finalizers of other programs, for a volume whose own
// finalizers are explained.
func (c *volumeChain) others(ctx context.Context) []blocker.Blocker {
	if c.typed.DeletionTimestamp == nil {
		return nil
	}
	return c.finalizers(ctx, func(name string) ([]blocker.Blocker, bool) {
		_, ours := finalizer.HolderOf(name)
		return nil, ours || strings.HasPrefix(name, attacherPrefix) // detached once no pod uses the claim
	})
}

// attacherFinalizer explains the finalizers that need the driver.
func (c *volumeChain) attacherFinalizer(ctx context.Context) func(string) ([]blocker.Blocker, bool) {
	return func(name string) ([]blocker.Blocker, bool) {
		switch {
		case name == string(finalizer.External) && c.stage == volume.Unclaimed && c.driver != "":
			return []blocker.Blocker{c.unclaimed(ctx)}, true
		case name == string(finalizer.External):
			return []blocker.Blocker{c.judgeFinalizer(ctx, name)}, true
		case !strings.HasPrefix(name, attacherPrefix):
			return nil, false
		}
		attached, seen := c.attachments(ctx)
		if len(attached) > 0 {
			return c.attachedTo(ctx, attached, name), true
		}
		found := c.judgeFinalizer(ctx, name)
		if !seen {
			found.Verdict = min(found.Verdict, blocker.Unknown)
		} else {
			found.Evidence = append(found.Evidence, evidence(blocker.FromList, "no VolumeAttachment names the volume"))
		}
		return []blocker.Blocker{found}, true
	}
}

// judgeFinalizer returns the blocker of a finalizer that a program beside the driver removes.
func (c *volumeChain) judgeFinalizer(ctx context.Context, name string) blocker.Blocker {
	finding := look(ctx, c, name, "PersistentVolume", "", c.driver)
	if c.external != "" && name == string(finalizer.External) {
		finding = c.Holders().Look(ctx, families.Provisioner(c.external), "")
	}
	reason, verdict := blocker.JudgeController(finding.State)
	return judged(c.blocker(name), volume.Judgment{Reason: reason, Verdict: verdict}, finding)
}

// blocker returns a blocker at the volume itself.
func (c *volumeChain) blocker(name string) blocker.Blocker {
	return blocker.Blocker{Object: cluster.ObjectOf(c.object), Finalizer: name, Since: askedAt(c.object)}
}

// toReclaim explains a volume whose disk has to be deleted.
func (c *volumeChain) toReclaim(ctx context.Context) []blocker.Blocker {
	var found []blocker.Blocker
	switch {
	case c.external != "":
		found = c.externally(ctx)
	case c.driver == "":
		found = c.plugin(ctx)
	default:
		found = c.reclaim(ctx)
	}
	if c.typed.DeletionTimestamp == nil {
		return found
	}
	attachedNamed := slices.ContainsFunc(found, func(b blocker.Blocker) bool { return b.Reason == blocker.VolumeAttached })
	explain := c.attacherFinalizer(ctx)
	return append(found, c.finalizers(ctx, func(name string) ([]blocker.Blocker, bool) {
		switch {
		case name == string(finalizer.External) || name == string(finalizer.InTree):
			return nil, true
		case name == string(finalizer.VolumeProtection) && reclaim.StatusOf(c.typed) == reclaim.StatusPending:
			return nil, true // kept for the annotation, which is explained
		case strings.HasPrefix(name, attacherPrefix) && attachedNamed:
			return nil, true
		}
		return explain(name)
	})...)
}

// keepForClaim makes Retain the one next step of a volume whose disk is to be deleted while the
// spec.volumeName of another claim names the volume: the user of that claim expects the data, and
// whatever lets the driver act deletes it.
func (c *volumeChain) keepForClaim(ctx context.Context, all []blocker.Blocker) []blocker.Blocker {
	claim := c.claimNaming(ctx)
	if claim == "" {
		return all
	}
	for i := range all {
		all[i].Evidence = append(all[i].Evidence, evidence(blocker.FromField, "spec.volumeName of claim %s names the volume",
			claim))
		all[i].Next = cluster.Steps("claim "+claim+
			" names the volume, whose disk is to be deleted with its data: first keep the disk, then look again",
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

// Chains returns the chains of the kinds of this package.
func Chains() map[schema.GroupKind]chain.Chain {
	return map[schema.GroupKind]chain.Chain{
		{Kind: "PersistentVolume"}:                              explainVolume,
		{Kind: "PersistentVolumeClaim"}:                         explainClaim,
		{Group: attachmentGroup, Kind: "VolumeAttachment"}:      explainAttachment,
		{Group: attachmentGroup, Kind: "VolumeAttributesClass"}: explainAttributesClass,
		{Group: "resource.k8s.io", Kind: "ResourceClaim"}:       explainDevices,
		{Group: single.group, Kind: single.snapshot}:            single.explainSnapshot,
		{Group: single.group, Kind: single.content}:             single.explainContent,
		{Group: grouped.group, Kind: grouped.snapshot}:          grouped.explainSnapshot,
		{Group: grouped.group, Kind: grouped.content}:           grouped.explainContent,
	}
}

// Finalizers returns the chains of finalizers that objects of any kind may have.
func Finalizers() map[string]chain.FinalizerChain {
	return map[string]chain.FinalizerChain{}
}

// subject is an object that is explained, also with its type.
type subject[T any] struct {
	chain.Explorer
	object *unstructured.Unstructured
	typed  *T
}

// newSubject returns the object with its type, and false if it does not have that type.
func newSubject[T any](e chain.Explorer, object *unstructured.Unstructured) (subject[T], bool) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		e.Reader().Note("could not read %s %s: %v", object.GetKind(), object.GetName(), err)
		return subject[T]{}, false
	}
	return subject[T]{e, object, typed}, true
}

// finalizers returns a blocker for each finalizer: that of its function in special, else that
// of the table.
func (s subject[T]) finalizers(ctx context.Context,
	special func(finalizer string) ([]blocker.Blocker, bool)) []blocker.Blocker {
	var all []blocker.Blocker
	for _, name := range s.object.GetFinalizers() {
		if found, is := special(name); is {
			all = append(all, found...)
			continue
		}
		all = append(all, s.Finalizer(ctx, s.object, name))
	}
	return all
}
