// Soak runs the real programs for minutes or hours, disturbs them, and finds out whether a volume
// leaked, was stuck or lost. See docs/architecture/testing.md.
//
//	soak --seed 7 --duration 5m [--side upstream]
//
//	plan      what is disturbed, and when: from the seed alone (NewPlan)
//	world     control plane, storage system, two replicas of each program (start.go, restart.go)
//	users     create and delete claims, volumes, pods and namespaces (users.go, lifecycle*.go),
//	          and owners with dependents (tree.go, detached.go)
//	watcher   sees every object and every CSI call through a connection without faults
//	verdict   what is left once the faults have ended and the users are done
//
// A seed decides what is disturbed and what the users do. When each step comes also depends on
// the machine: the same seed repeats the plan and the choices, not the interleaving.
//
// A volume is leaked if the storage system has it, and neither a PersistentVolume nor the
// journal does. It is lost if it was deleted while its claim existed or its policy was not
// Delete, or if it is missing while it must exist. A volume whose record is gone because
// etcd was restored from an older snapshot is neither: no program can know it, and "exeunt
// audit" finds it. Such volumes are counted of their own.
package main
