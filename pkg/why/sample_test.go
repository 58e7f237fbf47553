package why

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// manyVolumes returns 5,000 volumes of one driver, the youngest of which have failed, and then one of another driver.
func manyVolumes() []candidate {
	var all []candidate
	for i := range 5000 {
		phase := "Released"
		if i >= 4900 {
			phase = "Failed"
		}
		all = append(all, candidate{ref: cluster.Ref{Kind: "PersistentVolume"}, since: time.Unix(int64(i), 0), likeness: likeness{"persistentvolumes", "a.example.com", phase, "f"}})
	}
	return append(all, candidate{since: time.Unix(9999, 0), likeness: likeness{"persistentvolumes", "b.example.com", "Released", "f"}})
}

func TestYoungCauseIsInTheSample(t *testing.T) {
	found := manyVolumes()
	chosen := sample(found, maxExplained)
	if len(chosen) != maxExplained || !slices.IsSorted(chosen) || len(slices.Compact(slices.Clone(chosen))) != maxExplained {
		t.Fatalf("%d candidates are chosen", len(chosen))
	}
	count := map[likeness]int{}
	for _, i := range chosen {
		count[found[i].likeness]++
	}
	if count[found[4950].likeness] != 100 || count[found[5000].likeness] != 1 || chosen[0] != 0 || !slices.Contains(chosen, 4899) {
		t.Errorf("the sample has %v, and begins with %d", count, chosen[0])
	}
	if few := found[4990:]; len(sample(few, maxExplained)) != len(few) {
		t.Error("a few candidates are not all explained")
	}
}

func TestRestHasTheCauseOfItsSample(t *testing.T) {
	gone := blocker.Blocker{Reason: blocker.DriverMissing, Holder: "a.example.com", Verdict: blocker.Stuck, Next: "# start it"}
	attached := blocker.Blocker{Reason: blocker.VolumeAttached, Holder: "attacher", Verdict: blocker.Waiting}
	var sampled causes
	var items []waitingItem
	for i, root := range []blocker.Blocker{gone, attached, gone} {
		report := blocker.Report{Object: blocker.Object{Name: string(rune('x' + i))}, Verdict: root.Verdict, Blockers: []blocker.Blocker{root}}
		sampled.add(report)
		items = append(items, waitingItem{report, time.Unix(int64(10+i), 0)})
	}
	rest := sampled.likely(candidate{ref: cluster.Ref{Kind: "PersistentVolume", Name: "rest"}, since: time.Unix(1, 0)}, 5000)
	if rest.Verdict != blocker.Unknown || len(rest.Blockers) != 1 || rest.Blockers[0].Holder != "a.example.com" || !strings.Contains(rest.Incomplete[0], "of 5000 objects with the same kind, driver, phase and finalizers, 3 were, and 2 have this root blocker") {
		t.Errorf("the rest has %+v", rest)
	}
	groups := Survey{Items: grouped(append(items, waitingItem{rest, time.Unix(1, 0)}))}.Groups()
	if len(groups) != 2 || groups[0].Verdict != blocker.Stuck || len(groups[0].Items) != 3 || groups[0].Root.Verdict != blocker.Stuck {
		t.Errorf("the groups are %+v", groups)
	}
	if none := (&causes{}).likely(candidate{}, 7); none.Verdict != blocker.Unknown || len(none.Blockers) > 0 {
		t.Errorf("without a sample the rest has %+v", none)
	}
}
