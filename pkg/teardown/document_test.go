package teardown_test

import (
	"reflect"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/teardown"
)

func TestTotalsCountItems(t *testing.T) {
	d := Document{Items: []Item{
		{Kind: Volume, Plan: PlanDelete, Fate: Gone, Size: 1},
		{Kind: Volume, Plan: PlanDelete, Fate: Remains, Size: 2},
		{Kind: Volume, Plan: PlanDelete, Fate: Unknown, Size: 4},
		{Kind: Volume, Plan: PlanDelete, Fate: Planned, Size: 8},
		{Kind: Volume, Plan: PlanKeep, Fate: Kept, Size: 16},
		{Kind: LoadBalancer, Plan: PlanDelete, Fate: Gone},
	}}
	d.Count()
	want := map[Kind]Totals{
		Volume:       {Delete: 4, Keep: 1, Gone: 1, Remains: 1, Unknown: 1, Bytes: 31},
		LoadBalancer: {Delete: 1, Gone: 1},
	}
	if !reflect.DeepEqual(d.Totals, want) {
		t.Errorf("totals are %+v, want %+v", d.Totals, want)
	}
}

func TestTeardownAwaitsWhatIsLeftOrInUse(t *testing.T) {
	for _, tc := range []struct {
		item Item
		want bool
	}{
		{Item{Plan: PlanDelete, Fate: Planned}, true},
		{Item{Plan: PlanDelete, Fate: Unknown}, true},
		{Item{Plan: PlanDelete, Fate: Gone}, false},
		{Item{Plan: PlanKeep, Fate: Kept}, false},
		{Item{Plan: PlanKeep, Fate: Kept, InUse: true}, true},
	} {
		if got := tc.item.Awaited(); got != tc.want {
			t.Errorf("%+v is awaited: %t, want %t", tc.item, got, tc.want)
		}
	}
}
