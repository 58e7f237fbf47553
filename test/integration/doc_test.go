// Package integration runs controllers of our programs in the test process, on caches that
// a test fills by hand, against a real API server: a stale cache is never enough to delete
// data or to remove a finalizer.
package integration
