// Package blackbox tests the built program as a process. It does not import kube-apiserver,
// so its tests compile fast, also with the race detector.
//
// The binary is the one in the directory that EXEUNT_BIN names; without that,
// make builds it first.
package blackbox
