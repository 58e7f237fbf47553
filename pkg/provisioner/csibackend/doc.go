// Package csibackend creates and deletes volumes with a CSI driver: it gathers what a
// CreateVolumeRequest needs from claim, class, snapshot, source claim, nodes and secrets,
// calls CreateVolume and DeleteVolume, and translates volumes of the in-tree plugin that
// the driver replaced.
//
// Credentials are read for each call and not remembered. Values of a secret that a driver
// repeats are hidden in errors and reasons.
//
// The package decides nothing and writes no object, except that a source is protected
// before a volume is created from it: the engine in pkg/provisioner/provisioning and
// pkg/provisioner/deletion decides.
package csibackend
