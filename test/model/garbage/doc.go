// Package garbage is a model checker of garbage collection. It runs the real collector (packages
// garbage, graph, barrier and garbagecollector) in small clusters, and explores breadth-first what
// can happen in every order.
//
// Read in this order:
//
//	part                                    file
//	a cluster, and what can happen next     world.go
//	the state of a cluster                  state.go
//	objects, and how users see them         object.go
//	rules of the API server                 server.go
//	the collector starts, crashes, sees     steps.go
//	answers to its calls                    answers.go
//	actions of users                        users.go
//	upstream's collector                    stock.go
//	backups, and restores of etcd           restore.go
//	what is promised                        rules.go, rest.go
//	a running collector                     actor.go, client.go, queue.go
//	states of collectors                    machine.go, print.go
//	exploration (by test/model/explore)     explore.go
//	the clusters                            worlds.go
//
// A state of a collector is kept as the inputs that led to it, because a goroutine cannot be copied,
// and is found again by all that the collector remembers. Every collector lives in one bubble of
// testing/synctest, and has a clock of its own, which only the model moves.
package garbage
