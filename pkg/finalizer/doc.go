// Package finalizer knows the finalizers of persistent volumes and claims: their
// names, who holds each one and why, and how to add or take one off without
// touching any other (KEP-2644, "Design Details").
//
//	finalizer                                          held by          until
//	external-provisioner.volume.kubernetes.io/finalizer provisioner     the driver has deleted the volume
//	kubernetes.io/pv-controller                        pv-controller    the in-tree plugin has deleted the volume
//	kubernetes.io/pv-protection                        pv-controller    the volume is no longer bound, nor held for its reclaim
//	kubernetes.io/pvc-protection                       pv-controller    no pod uses the claim
//	exeunt.io/provisioning                             provisioner      at once: earlier versions added it, a journal
//	                                                                    entry replaces it
//
// Set operations never change the slice they are given and keep the order of
// all other finalizers. Writes are JSON patches that test the whole list as it
// was observed (see [Edit]); the API server refuses to add a finalizer to an
// object that is being deleted, so callers decide before that.
package finalizer
