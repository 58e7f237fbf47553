// Package upstream is where "make apiserver-integration" builds upstream's integration tests. They are those of the
// modules of Kubernetes, with one line changed: they start the server that package compose puts together.
package upstream
