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
//	04     preserved  none         any     any      open                     Wait, ProvisioningRequested
//	04     preserved  none         any     any      unanswered for 2 min     Leave, OutcomeUnknown
//	04     preserved  any          any     any      any                      Leave, Preserved
//	14     ephemeral  any          any     any      any                      Wait, GoesWithPod
//	       any        any          closed  any      any                      Wait, WaveClosed
//	01     any        any          open    there    any                      Wait, PodsUseIt
//	20     pending    none         open    none     unrequested              Delete, Unrequested
//	       pending    there        open    none     any                      Wait, ProvisioningRequested
//	21     pending    none         open    none     open                     Wait, ProvisioningRequested
//	21     pending    none         open    none     failed for good          Delete, ProvisioningFailed
//	21     pending    none         open    none     unanswered for 2 min     Delete, OutcomeUnknown
//	       bound      unseen       open    none     any                      Wait, VolumeUnseen
//	01     bound      unread       open    none     any                      Confirm, then Delete, VolumeDeletable
//
// A pod that uses claims is deleted before its claims, once each kept volume that it uses is marked. Its deletion deletes
// its ephemeral claims, so it waits for what these would wait for:
//
//	#      pod                  wave    volumes       decision
//	22     deleting             any     any           Wait, PodTerminating
//	22     mirror               any     any           Leave, MirrorPod
//	14     any                  any     unmarked      Wait, KeepingVolume
//	25     any                  closed  any           Wait, WaveClosed
//	14,21  any                  open    requested     Wait, ProvisioningRequested
//	06,14  any                  open    unread        Confirm, UsesClaims
//	24     any                  open    read          Delete, UsesClaims
package claim
