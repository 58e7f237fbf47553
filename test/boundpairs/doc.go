// Package boundpairs has the bound volumes and claims of a large cluster, as an API server
// sends them, for tests and benchmarks of memory.
package boundpairs
