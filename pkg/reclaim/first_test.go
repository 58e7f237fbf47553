package reclaim_test

import (
	"slices"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestFirstFinalizers(t *testing.T) {
	inTree := []string{"kubernetes.io/pv-controller"}
	for name, tc := range map[string]struct {
		honor   bool
		policy  storage.Policy
		deletes bool
		want    []string
	}{
		"policy Delete: with it from the first write":         {true, storage.PolicyDelete, true, inTree},
		"policy Retain: without":                              {true, storage.PolicyRetain, true, nil},
		"policy Recycle: without":                             {true, storage.PolicyRecycle, true, nil},
		"the gate is off: without":                            {false, storage.PolicyDelete, true, nil},
		"a plugin that cannot delete: nobody would remove it": {true, storage.PolicyDelete, false, nil},
		"a policy of tomorrow: without":                       {true, storage.PolicyUnknown, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := FirstFinalizers(tc.honor, tc.policy, tc.deletes); !slices.Equal(got, tc.want) {
				t.Errorf("FirstFinalizers = %v, want %v", got, tc.want)
			}
		})
	}
}
