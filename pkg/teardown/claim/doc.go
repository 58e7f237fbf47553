// Package claim decides when a teardown deletes a claim, and when a pod that uses claims. It reads no clock and no API
// object.
//
// "#" is the row of the design. The first case that fits counts.
//
//	#      claim      volume       wave    pods     request                  decision
//	22     deleting   any          any     any      any                      Wait, Terminating
//	02,11  any        kept         any     any      any                      Leave, VolumeKept
//	06     bound      kept live    any     any      any                      Leave, VolumeKept
//	06     bound      unmarked     any     any      any                      Wait, KeepingVolume
//	11     lost       any          any     any      any                      Leave, LostClaim
//	14     ephemeral  any          any     any      any                      Wait, GoesWithPod
//	       any        any          closed  any      any                      Wait, WaveClosed
//	01     any        any          open    there    any                      Wait, PodsUseIt
//	20     pending    none         open    none     unrequested              Delete, Unrequested
//	21     pending    none         open    none     open                     Wait, ProvisioningRequested
//	21     pending    none         open    none     failed for good          Delete, ProvisioningFailed
//	21     pending    none         open    none     unanswered for 2 min     Delete, OutcomeUnknown
//	01     bound      unread       open    none     any                      Confirm, then Delete, VolumeDeletable
//
// A pod that uses claims is deleted before its claims, once each kept volume that it uses is marked:
//
//	#      pod                  wave    volumes       decision
//	22     deleting             any     any           Wait, PodTerminating
//	22     mirror               any     any           Leave, MirrorPod
//	14     any                  any     unmarked      Wait, KeepingVolume
//	25     any                  closed  any           Wait, WaveClosed
//	24     any                  open    marked        Delete, UsesClaims
package claim
