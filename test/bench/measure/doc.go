// Package measure computes what volumes cost from counters that are read before and after a
// phase: requests and watch bytes from the metrics of the API server, CPU time and memory
// from /proc, calls from the log of the CSI driver. It reads no file and no clock.
package measure
