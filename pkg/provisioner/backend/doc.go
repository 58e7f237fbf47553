// Package backend is the seam between the engine that provisions volumes
// (pkg/provisioner/provisioning) and a storage backend: a CSI driver
// (pkg/provisioner/csibackend), or any program with a Provision function.
//
// The engine decides when a volume is requested, requested again, recorded as a
// PersistentVolume or discarded, and writes the journal. The backend builds the request,
// calls the storage system, and reports for each failed call what is known of the volume.
package backend
