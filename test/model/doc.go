// Package model explores every interleaving of small clusters: the real controllers of our
// programs, stepped by test/model/process, on an API server and a storage system that are
// functions. A state is everything that can make a difference: API objects, volumes in
// storage, what each program caches, remembers and has in flight, who leads, and which
// faults and users' actions are still to come.
//
// Read in this order:
//
//	part                                       file
//	a world: its programs, objects and faults  config.go
//	a state of a world, and its key            state.go
//	numbers of objects, versions and disks     lab.go
//	programs of a world, its first state       world.go
//	answers of the API server                  apiserver.go
//	disks in storage, and who keeps them       disks.go
//	every step that can follow a state         steps.go
//	caches see versions, watches stall         caches.go
//	a controller reconciles a key              passes.go
//	answers to the calls of a program          answers.go
//	failed, wrong, denied and late answers     answer_faults.go
//	start, crash, loss of the lease, time      lifecycle.go
//	backups of etcd, and restores              restore.go
//	a state as the rules see it                snapshot.go
//	broken rules, and excuses for upstream     rules.go
//	exploration of all states                  explore.go
//	random walks                               walk.go
//
// The worlds:
//
//	all groups, and the programs               worlds.go
//	changes of a world, such as a crash        changes.go
//	objects at the beginning                   objects.go, object_changes.go
//	actions of users                           users.go
//	claims and volumes, created and deleted    worlds_claims.go
//	faults of driver, watch, etcd and webhook  worlds_faults.go
//	concurrent loops, namespaces, every cache  worlds_cluster.go
//	one program of ours beside upstream's      worlds_upstream.go
//	bugs that the model has to find            known_bugs.go
//	large worlds of random walks               worlds_large.go
//	small worlds in which mutants are judged   worlds_mutants*.go
package model
