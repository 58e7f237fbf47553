package measure

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// tick is the unit of CPU time in /proc/PID/stat: sysconf(_SC_CLK_TCK) is 100 on Linux.
const tick = time.Second / 100

// The fields of user and system time in /proc/PID/stat, counted after the name of the program.
const (
	userField   = 11
	systemField = 12
)

// ParseCPU returns the CPU time in the text of /proc/PID/stat.
func ParseCPU(stat []byte) (time.Duration, error) {
	end := bytes.LastIndexByte(stat, ')') // the name can have spaces and brackets
	fields := bytes.Fields(stat[end+1:])
	if end < 0 || len(fields) <= systemField {
		return 0, errors.New("parse stat of a process: too few fields")
	}
	ticks := 0
	for _, field := range []int{userField, systemField} {
		count, err := strconv.Atoi(string(fields[field]))
		if err != nil {
			return 0, fmt.Errorf("parse stat of a process: %w", err)
		}
		ticks += count
	}
	return time.Duration(ticks) * tick, nil
}

var (
	highWater = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)
	resident  = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)
	anonymous = regexp.MustCompile(`(?m)^RssAnon:\s+(\d+) kB$`)
)

// ParsePeakMemory returns the largest size in bytes in the text of /proc/PID/status.
func ParsePeakMemory(status []byte) (int, error) { return parseKilobytes(status, highWater, "VmHWM") }

// ParseMemory returns the resident size in bytes in the text of /proc/PID/status.
func ParseMemory(status []byte) (int, error) { return parseKilobytes(status, resident, "VmRSS") }

// ParseAnonymousMemory returns the resident size in bytes without pages of files, which the kernel takes back where memory
// is short: Kubernetes does not count those in the working set of a container.
func ParseAnonymousMemory(status []byte) (int, error) {
	return parseKilobytes(status, anonymous, "RssAnon")
}

func parseKilobytes(status []byte, line *regexp.Regexp, name string) (int, error) {
	found := line.FindSubmatch(status)
	if found == nil {
		return 0, fmt.Errorf("parse status of a process: it has no %s", name)
	}
	kilobytes, err := strconv.Atoi(string(found[1]))
	if err != nil {
		return 0, fmt.Errorf("parse %s: %w", name, err)
	}
	return kilobytes << 10, nil
}
