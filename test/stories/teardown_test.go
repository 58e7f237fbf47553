package stories

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTableHasAColumnForEachWay(t *testing.T) {
	var out bytes.Buffer
	err := NewTextPrinter(&out).Summarize([]Result{
		{Story: "teardown", Pair: "machines", NoVolumes: true, Measures: []Measure{{Name: "snapshots left", Value: "1"}}},
		{Story: "teardown", Pair: "services", NoVolumes: true, Measures: []Measure{{Name: "disks left", Value: "3"}}},
		{Story: "teardown", Pair: "script", NoVolumes: true, Measures: []Measure{{Name: "disks left", Value: "1"}}},
	})
	want := `
STORY      MEASURED         MACHINES   SERVICES   SCRIPT
teardown   snapshots left   1          -          -
teardown   disks left       -          3          1
`
	if diff := cmp.Diff(want, out.String()); err != nil || diff != "" {
		t.Errorf("Summarize: %v; table (-want +got):\n%s", err, diff)
	}
}
