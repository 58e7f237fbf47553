// Package nodes explores what can happen in every order while a node is terminated: the decisions of packages
// termination/node and termination/pod are the real ones; API server, kubelet, attach-detach controller, machine and
// users are modeled, and so is how a decision is carried out.
//
//	part                                      file
//	the state of the world                    state.go
//	what node-terminator sees and does        terminator.go
//	kubelet, machine, controllers and users   others.go
//	what is promised, and the worlds          worlds.go
package nodes
