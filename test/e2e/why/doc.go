// Package why runs "exeunt why" on real API servers of all supported versions, without a
// driver, a control plane or a node that could be seen.
package why
