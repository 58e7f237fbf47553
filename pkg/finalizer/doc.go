// Package finalizer names the finalizers of this project, the component that removes each of
// them, and adds and removes them without a change to any other finalizer (KEP-2644, "Design
// Details").
//
//	finalizer                                                    removed by     when
//	external-provisioner.volume.kubernetes.io/finalizer          provisioner    the driver has deleted the volume
//	kubernetes.io/pv-controller                                  pv-controller  the in-tree plugin has deleted the volume
//	kubernetes.io/pv-protection                                  pv-controller  the volume is not bound, and does not await its reclaim
//	kubernetes.io/pvc-protection                                 pv-controller  no pod uses the claim
//	provisioner.storage.kubernetes.io/cloning-protection         provisioner    no clone of the claim waits for its volume
//	provisioner.storage.kubernetes.io/
//	    volumesnapshot-as-source-protection                      provisioner    no claim waits for a volume from the snapshot
//
// [With] and [Without] never change the slice they get, and keep the order of all other
// finalizers. [Edit] writes JSON patches that test the whole list as it was observed. The API
// server refuses to add a finalizer to an object that is being deleted: the caller decides
// about that.
package finalizer
