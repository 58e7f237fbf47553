// Package teardown explores what can happen in every order while a cluster is torn down. The decisions of package
// teardown, the inventory with its waves, and the rule for participants are the real ones. API server, owners, kubelet,
// provisioner and users are modeled, and so is how the runner carries a decision out.
//
//	part                                       file
//	the state of the world                     state.go
//	API objects for the inventory              objects.go
//	what a runner sees and does                runner.go
//	owners, kubelet, provisioner, participant  cluster.go
//	the Service and its controller             services.go
//	users and faults                           users.go
//	what is promised                           rules.go
//	the worlds                                 worlds.go
package teardown
