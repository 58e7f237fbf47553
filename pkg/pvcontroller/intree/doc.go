// Package intree holds the in-tree volume plugins of the pv-controller. Its subpackages
// are the controllers that call the plugins: provisioner and reclaimer.
//
//	plugin                   provision                delete              recycle
//	kubernetes.io/host-path  below /tmp, with a flag  below /tmp          by a recycler pod
//	kubernetes.io/nfs        no                       no                  by a recycler pod
//
// A plugin states its abilities by its type: [Provisioner], [Deleter], [Recycler]. [Set]
// finds the plugin of a volume or a storage class, and leaves out plugins that a CSI
// driver replaced. Plugins are called after a decision of packages binding or
// reclaim/plugin; they decide only whether a path is safe to delete.
//
// Invariants: a plugin deletes only below its own directory, follows no symbolic link, and
// reports success only for data that is gone. Deleting missing data is a success.
//
// The package does not mount, attach or resize.
package intree
