// Package csimock is an in-memory CSI driver for tests, demos and CI: the
// Identity, Controller, GroupController and Node services of the Container
// Storage Interface, version 1.13, over a unix socket.
//
// Tests observe and disturb the driver:
//
//   - every capability can be switched off; the driver then does not advertise the
//     capability, and its calls return Unimplemented (see Capability);
//   - Calls and the call log file list every finished call in order, written before
//     the response is sent (see Call);
//   - scripted faults delay, block, fail or disconnect a method, or falsify its
//     response, for all volumes or for one, before or after the handler (see Fault);
//   - the state file, if configured, is written before the response to the changing
//     call is sent, so that a restarted driver knows everything that it confirmed;
//   - volumes and the storage backend have health conditions, which are part of the
//     state (see Condition).
//
// Order of a call: the interceptor checks the capability, applies the first matching
// fault, runs the handler, saves the state, applies a fault with After, appends the call
// to the log, and sends the response.
//
// Invariants:
//
//   - a volume ID is never used for a second volume, not even after a restart
//     without the state file;
//   - a published or staged volume is never deleted;
//   - a snapshot outlives its source volume;
//   - the call log contains neither secrets nor parameters, and secrets are stored
//     nowhere.
//
// Limits: the driver stores no data and mounts nothing. A target path is an ordinary
// directory, or a file for a block volume, created by NodePublishVolume and removed with
// its contents by NodeUnpublishVolume. The alpha service SnapshotMetadata is missing:
// without data there are no changed blocks to list.
//
// Public API: everything exported is meant for tests of other programs. These are Start
// and New with Config; the capabilities, faults and health conditions that Config takes,
// and their file formats; and the records that Calls, Volumes and Snapshots return.
package csimock
