// Package intree holds the in-tree volume plugins that the pv-controller serves,
// and knows which in-tree plugins a CSI driver has taken over.
//
//	plugin                   provision            delete               recycle
//	kubernetes.io/host-path  below /tmp, if asked below /tmp, only it  by a recycler pod
//	kubernetes.io/nfs        no                   no                   by a recycler pod
//
// A plugin that is migrated to CSI is not asked, even if it is here: see [Set].
// What it can do it says by its type: [Provisioner], [Deleter], [Recycler]. It is
// asked only for what a decision of package reclaim has confirmed; it decides
// nothing but whether a path is safe to delete.
//
// Invariants: a plugin deletes only below its own directory, follows no symbolic
// link, and reports success only for data that is gone. Deleting what is gone
// already is a success.
//
// The package does not mount, attach or resize.
package intree
