// Package volume sets the phase of volumes, releases volumes whose claim is gone, and
// adds and removes pv-protection: it executes [binding.DecideVolume] and
// [protection.DecideVolume]. The workqueues have the names of kube-controller-manager.
//
//	workqueue     enqueued by                                  writes
//	volumes       volumes, claims, deletion by a plugin,       metadata (see [InTree]), phase, claimRef
//	              end of a recycler pod
//	pvprotection  the queue above, once both are right         pv-protection
//
// Volumes that are Released or Failed are handed to [InTree], which has workers of its
// own: a slow plugin does not delay a phase.
//
// A volume that is being deleted loses pv-protection in the write that sets the phase
// Released. From then on the finalizer of the reclaiming component keeps the volume; if
// that finalizer is missing, pv-protection stays ([plugin.NeedsProtection]). No volume is
// released unless its claim was read from the API server, by UID.
package volume
