// Package runner carries out the teardown of a cluster, for "exeunt teardown" and alive-controller: whoever holds the
// Lease exeunt-teardown.
//
//	runner.go    watches Alive, and competes for the Lease while there is something to do
//	session.go   the rounds of one term: observe, Decide, execute
//	watch.go     the watches that fill the inventory, and the lists at the end
//	observe.go   from objects to the state of [teardown.Decide]
//	execute.go   one action
//	batch.go     marks and deletions, at most 100 at a time
//	freeze.go    the policy that refuses new disks and load balancers
//	record.go    plan and report, in ConfigMaps; recording.go: what they have
//	status.go    the status of Alive
//	command.go   what a person's command does: install, arm, delete, abort
//
// What is in progress follows from what is read. Memory is a cache: a runner that is killed after any write observes
// again. Each deletion needs a Lease that is valid beyond the margin, and a batch begins with live reads of kube-system
// and Alive. Time is that of the API server.
package runner
