// Package alive tries the guards of Alive, its CRD and the freeze of a teardown on a real kube-apiserver: which requests
// are refused, by which guard, and with which answer.
package alive
