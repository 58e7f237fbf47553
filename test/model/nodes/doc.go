// Package nodes explores what can happen in every order while nodes are terminated: the decisions of packages
// termination/node, termination/pod and deadline are the real ones; API server, kubelets, attach-detach controller,
// machines and users are modeled, and so is how a decision is carried out, with the guards of package nodeterminator.
//
//	part                                              file
//	the state of the world                            state.go
//	times, and what a deadline says of them           times.go
//	what the leader sees, and what it decides         leader.go
//	how it carries a decision out, maybe too late     writes.go
//	how it ends pods                                  ends.go
//	kubelets, disk and controllers                    others.go
//	faults and users                                  faults.go
//	what is promised                                  rules.go
//	the worlds                                        worlds.go
package nodes
