// Package backend is the seam between the engine that provisions and reclaims volumes
// (pkg/provisioner/provisioning, pkg/provisioner/deletion) and a storage backend: a CSI
// driver (pkg/provisioner/csibackend), or any program with a Provision and a Delete
// function.
//
// The engine decides when a volume is requested, requested again, recorded as a
// PersistentVolume, discarded or deleted, and writes the journal. A [Backend] builds the
// request, calls the storage system, and reports for each failed call what is known of
// the volume. A [Deleter] deletes volumes and tells their disks apart.
package backend
