//go:build !unix

package instances

import (
	"io/fs"
	"syscall"
)

// isTrusted is false: only the owner of a file under unix is known here.
func isTrusted(fs.FileInfo) bool { return false }

// restrict does nothing: the system has no modes.
func restrict(_, _ string, _ syscall.RawConn) error { return nil }
