// Package rbac embeds the rights of upstream's programs.
package rbac

import "embed"

// Manifests are the rights of kube-controller-manager and csi-provisioner, Snapshots those of snapshot-controller and
// csi-snapshotter.
var (
	//go:embed *.yaml
	Manifests embed.FS
	//go:embed snapshots
	Snapshots embed.FS
)
