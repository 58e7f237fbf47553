// Package pvcontroller connects the reconcilers of the pv-controller.
//
//	package             workqueues              does
//	claim               claims                  binds claims to volumes, requests provisioning
//	volume              volumes, pvprotection   sets phases, releases volumes, pv-protection
//	protection          pvcprotection           pvc-protection of claims
//	intree/provisioner  provisioning            provisions volumes with in-tree plugins
//	intree/reclaimer    reclaims                deletes and recycles volumes with in-tree plugins
//
// The workqueues of the first three have the names of kube-controller-manager. Package
// claim hands claims to intree/provisioner, package volume hands volumes to
// intree/reclaimer, each through an interface of its own; neither knows a plugin.
// Package pvwriter writes PersistentVolumes for all of them: its doc.go says which field
// is written where.
package pvcontroller
