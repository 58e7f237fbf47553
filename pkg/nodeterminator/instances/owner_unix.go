//go:build unix

package instances

import (
	"io/fs"
	"os"
	"syscall"
)

// isTrusted reports whether a file belongs to root or to the user of this process.
func isTrusted(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && (stat.Uid == 0 || int(stat.Uid) == os.Geteuid())
}

// restrict gives a socket mode 0600 before it has a name. Other systems than Linux refuse.
func restrict(_, _ string, connection syscall.RawConn) error {
	return connection.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
}
