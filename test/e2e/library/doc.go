// Package library runs one provisioner, a directory on the host for each volume, on the
// controller of sig-storage-lib-external-provisioner v10 and on that of
// pkg/provisioner, as processes against a real kube-apiserver and our pv-controller.
// The same cases are played on both; the last lines of the output are a table of
// what each controller left in the storage system.
//
// The process is this test binary, started again: its provisioner is that of
// examples/hostpath-provisioner, and asks the test after each call how the call ends.
package library
