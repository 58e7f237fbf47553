// Package integration tests bin/kube-apiserver as a process on a real etcd, beside a stock one: make test-apiserver.
package integration
