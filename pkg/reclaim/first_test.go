package reclaim_test

import (
	"slices"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/reclaim"
)

func TestFirstFinalizers(t *testing.T) {
	inTree := []string{"kubernetes.io/pv-controller"}
	for name, tc := range map[string]struct {
		honor   bool
		policy  Policy
		deletes bool
		want    []string
	}{
		"policy Delete: with it from the first write":         {true, Delete, true, inTree},
		"policy Retain: without":                              {true, Retain, true, nil},
		"policy Recycle: without":                             {true, Recycle, true, nil},
		"the gate is off: without":                            {false, Delete, true, nil},
		"a plugin that cannot delete: nobody would remove it": {true, Delete, false, nil},
		"a policy of tomorrow: without":                       {true, OtherPolicy, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FirstFinalizers(tc.honor, tc.policy, tc.deletes); !slices.Equal(got, tc.want) {
				t.Errorf("FirstFinalizers = %v, want %v", got, tc.want)
			}
		})
	}
}
