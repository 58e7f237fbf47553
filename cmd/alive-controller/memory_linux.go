package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// shrink gives back what only the start, or a teardown, needed: free memory, and the pages of the program, most of which are
// not used again while the cluster is protected. A page that is used later is read from the file again.
func shrink() error {
	debug.FreeOSMemory()
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program: %w", err)
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("read the map of the memory: %w", err)
	}
	defer func() { _ = maps.Close() }()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var begin, end uintptr
		var rights string
		if !strings.HasSuffix(lines.Text(), " "+program) {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &begin, &end, &rights); err != nil {
			return fmt.Errorf("read the map of the memory: %w", err)
		}
		if strings.Contains(rights, "w") {
			continue // variables: the file has not what they are now
		}
		if _, _, code := unix.Syscall(unix.SYS_MADVISE, begin, end-begin, unix.MADV_DONTNEED); code != 0 {
			return fmt.Errorf("give back pages of the program: %w", code)
		}
	}
	return lines.Err()
}
