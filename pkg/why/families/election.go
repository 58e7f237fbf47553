package families

import (
	"slices"
	"strconv"
	"strings"
)

// electionFlags are the flags, without dashes, that switch leader election on or off.
var electionFlags = []string{"leader-election", "leader-elect", "enable-leader-election", "leader-election-enabled"}

// RunsWithoutElection reports whether the arguments of the program say that it works without a
// leader Lease.
func (c Controller) RunsWithoutElection(args []string) bool {
	for _, arg := range slices.Backward(args) { // the last one counts
		flag, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !strings.HasPrefix(arg, "-") || !slices.Contains(electionFlags, flag) {
			continue
		}
		on, err := strconv.ParseBool(value)
		return hasValue && err == nil && !on
	}
	return c.ElectsByFlag && !slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, "$(") })
}
