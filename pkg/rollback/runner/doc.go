// Package runner carries out "exeunt rollback": it observes the cluster, lets package
// rollback decide about every object, and, if the administrator confirms, removes what may
// be removed. Workloads belong to charts and manifests: their commands are printed.
//
// Every write tests what its decision used: the UID of the object, and its version or the
// removed value. A run that was interrupted is continued by the next run.
package runner
