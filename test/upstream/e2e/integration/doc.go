// Package garbagecollector is where "make e2e-garbage-integration" builds upstream's integration
// tests of garbage collection. They are those of the Kubernetes module, with one line changed:
// they import the package below instead of upstream's collector.
package garbagecollector
