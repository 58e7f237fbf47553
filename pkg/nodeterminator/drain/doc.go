// Package drain ends the pods of nodes that are being terminated. What happens to a pod is decided by package
// [github.com/exeunt-io/exeunt/pkg/termination/pod].
package drain
