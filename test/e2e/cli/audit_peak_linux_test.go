package cli

import (
	"os"
	"syscall"
)

// peakMemory returns the peak resident memory of a finished process in KiB.
func peakMemory(state *os.ProcessState) int64 {
	usage, _ := state.SysUsage().(*syscall.Rusage)
	return usage.Maxrss
}
