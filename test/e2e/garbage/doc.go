// Package garbage runs garbage-collector, and beside it upstream's garbage-collector-controller,
// against a real API server.
package garbage
