// Package plugin decides how the pv-controller reclaims volumes of in-tree plugins: by
// deleting or by recycling them (KEP-2644, "In-Tree Plugin volumes").
//
// [Decide] is for a volume whose claim no longer uses it (phase Released or Failed):
//
//	policy           reclaimer           decision
//	Delete           plugin              Confirm, then DeleteVolume, DeleteObject, RemoveFinalizer
//	Delete           missing             SetPhaseFailed
//	Delete           external, migrated  Wait: the provisioner reclaims the volume
//	Recycle          plugin can recycle  Confirm, then CreateRecycler; after success FinishRecycling, ClearClaimRef
//	Recycle          no plugin           SetPhaseFailed
//	Delete, Recycle  data is shared      Wait
//	Recycle          pod still runs      Wait
//	Retain                               Wait
//
// [DecideMetadata] decides the in-tree finalizer (IT), the removal of External (EX) where
// migration is off, and the annotation migrated-to:
//
//	origin                        policy           finalizers          migrated-to
//	in-tree plugin, can delete    Delete           add IT, remove EX   removed
//	in-tree plugin, can delete    Retain, Recycle  remove IT and EX    removed
//	in-tree plugin, cannot delete any              remove IT and EX    removed
//	migrated plugin               any              remove IT, keep EX  set to the driver
//	external provisioner          any              remove IT, keep EX  unchanged
//	static                        any              remove IT, unless policy is Delete  unchanged
//	static, migrated plugin       any              remove IT           set to the driver
//
// [NeedsProtection] decides whether pv-protection stays on a released volume that lacks the
// finalizer of the component that reclaims it.
//
// Invariants, tested over every state: a plugin or recycler pod is used only for a state
// that was read live; a recycler pod counts only if its annotation names the volume and the
// claim ([DataID]); InTree is added only where a plugin can remove it; a volume with policy
// Delete is never without a finalizer while InTree and External are exchanged.
package plugin
