package binding

import (
	"fmt"
	"strings"
	"testing"
)

// namesOf returns the names of the values from 0 to the last one.
func namesOf[T interface {
	~int
	fmt.Stringer
}](last T) []string {
	var names []string
	for value := T(0); value <= last; value++ {
		names = append(names, value.String())
	}
	return append(names, (last + 1).String())
}

func TestEveryValueHasDistinctName(t *testing.T) {
	for enum, names := range map[string][]string{
		"Class": namesOf(ProvisionableHere), "Status": namesOf(StatusLost), "ClaimAction": namesOf(SetMigratedTo),
		"VolumeAction": namesOf(ReportMismatch), "Relation": namesOf(BoundToOther),
		"PluginVolume": namesOf(Finished), "ProvisionAction": namesOf(ReportNameConflict),
	} {
		seen := map[string]bool{}
		for i, name := range names {
			beyond := i == len(names)-1
			if seen[name] || strings.HasPrefix(name, "invalid") != beyond {
				t.Errorf("value %d of %s has the name %q", i, enum, name)
			}
			seen[name] = true
		}
	}
}
