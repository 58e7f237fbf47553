package csimock

import "testing"

func TestOldCallsAreForgotten(t *testing.T) {
	var log callLog
	const calls = 2*keptCalls + 1
	for range calls {
		if _, err := log.append(Call{}, func() int { return 0 }); err != nil {
			t.Fatal(err)
		}
	}
	kept := log.all()
	if len(kept) != keptCalls+1 || kept[0].Seq != calls-keptCalls || kept[keptCalls].Seq != calls {
		t.Errorf("of %d calls, %d are kept, from %d to %d", calls, len(kept), kept[0].Seq, kept[len(kept)-1].Seq)
	}
}
