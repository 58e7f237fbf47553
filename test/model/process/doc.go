// Package process runs the real controllers of a program step by step: what a program sees
// and each answer that it gets is given to it, and what it does next is read from it. The
// same inputs always lead to the same state, so that a state is kept as its inputs.
//
//	part                                             file
//	what a program gets, and how the model runs it   program.go
//	our programs, wired as their binaries wire them  pvcontroller.go, intree.go, provisioner.go
//	a running program, and its caches                actor.go, informer.go
//	its calls, and their answers                     call.go
//	what happens to it                               input.go
//	its states, and the way back to each of them     machine.go, concurrent.go, pool.go
//	a digest of what it remembers                    fingerprint.go
//	programs that never go back to a state           forward.go, run.go
package process
