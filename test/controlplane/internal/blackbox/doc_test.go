// Package blackbox tests the program as its users have it: the built binary, in
// processes of its own. It imports nothing of kube-apiserver, so its tests are
// cheap to compile, with the race detector too.
//
// The binary is the one in the directory that EXEUNT_BIN names; without that,
// make builds it first.
package blackbox
