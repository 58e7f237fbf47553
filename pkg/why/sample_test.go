package why

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// manyVolumes returns 5,000 volumes of one driver, the youngest of which have failed, and then one of another driver.
func manyVolumes() []candidate {
	var all []candidate
	for i := range 5000 {
		phase := "Released"
		if i >= 4900 {
			phase = "Failed"
		}
		all = append(all, candidate{ref: cluster.Ref{Kind: "PersistentVolume"}, since: time.Unix(int64(i), 0),
			likeness: likeness{"persistentvolumes", "a.example.com", phase, "f"}})
	}
	return append(all, candidate{since: time.Unix(9999, 0), likeness: likeness{"persistentvolumes", "b.example.com",
		"Released", "f"}})
}

func TestYoungCauseIsInTheSample(t *testing.T) {
	found := manyVolumes()
	chosen := sample(found, maxExplained)
	if len(chosen) != maxExplained || !slices.IsSorted(chosen) ||
		len(slices.Compact(slices.Clone(chosen))) != maxExplained {
		t.Fatalf("%d candidates are chosen", len(chosen))
	}
	count := map[likeness]int{}
	for _, i := range chosen {
		count[found[i].likeness]++
	}
	if count[found[4950].likeness] != 100 || count[found[5000].likeness] != 1 || chosen[0] != 0 ||
		!slices.Contains(chosen, 4899) {
		t.Errorf("the sample has %v, and begins with %d", count, chosen[0])
	}
	if few := found[4990:]; len(sample(few, maxExplained)) != len(few) {
		t.Error("a few candidates are not all explained")
	}
}

func TestRestHasTheCauseOfItsSample(t *testing.T) {
	gone := blocker.Blocker{Reason: blocker.DriverMissing, Holder: "a.example.com", Verdict: blocker.Stuck,
		Next: "# start it"}
	attached := blocker.Blocker{Reason: blocker.VolumeAttached, Holder: "attacher", Verdict: blocker.Waiting}
	var sampled causes
	var items []waitingItem
	for i, root := range []blocker.Blocker{gone, attached, gone} {
		report := blocker.Report{Object: blocker.Object{Name: string(rune('x' + i))}, Verdict: root.Verdict,
			Blockers: []blocker.Blocker{root}}
		sampled.add(report)
		items = append(items, waitingItem{report, time.Unix(int64(10+i), 0)})
	}
	rest := sampled.likely(candidate{ref: cluster.Ref{Kind: "PersistentVolume", Name: "rest"}, since: time.Unix(1, 0)},
		5000)
	if rest.Verdict != blocker.Unknown || len(rest.Blockers) != 1 || rest.Blockers[0].Holder != "a.example.com" ||
		!strings.Contains(rest.Incomplete[0],
			"of 5000 objects with the same kind, driver, phase and finalizers, 3 were, and 2 have this root blocker") {
		t.Errorf("the rest has %+v", rest)
	}
	groups := Survey{Items: grouped(append(items, waitingItem{rest, time.Unix(1, 0)}))}.Groups()
	if len(groups) != 2 || groups[0].Verdict != blocker.Stuck || len(groups[0].Items) != 3 ||
		groups[0].Root.Verdict != blocker.Stuck {
		t.Errorf("the groups are %+v", groups)
	}
	if none := (&causes{}).likely(candidate{}, 7); none.Verdict != blocker.Unknown || len(none.Blockers) > 0 {
		t.Errorf("without a sample the rest has %+v", none)
	}
}

// thousands returns 4,980 deleted volumes of a driver whose provisioner leads, and then 20 younger ones of a
// driver whose provisioner is gone, as objects and as candidates.
func thousands() (clustertest.Objects, []candidate) {
	volumes, found := []metav1.Object{}, []candidate{}
	for i := range 5000 {
		driver, asked := "lives.example.com", metav1.NewTime(time.Now().Add(-time.Hour+time.Duration(i)*time.Millisecond).
			Truncate(time.Second))
		if i >= 4980 {
			driver = "gone.example.com"
		}
		volume := &corev1.PersistentVolume{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("v-%d", i), UID: types.UID(fmt.Sprint(i)), DeletionTimestamp: &asked,
				Finalizers: []string{string(finalizer.External)}},
			Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
				ClaimRef:                      &corev1.ObjectReference{Namespace: "n", Name: "c", UID: "c"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver,
					VolumeHandle: fmt.Sprintf("h-%d", i)}},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased},
		}
		volumes = append(volumes, volume)
		found = append(found, candidate{
			ref: cluster.Ref{Resource: corev1.SchemeGroupVersion.WithResource("persistentvolumes"), Kind: "PersistentVolume",
				Name: volume.Name},
			uid: volume.UID, since: asked.Time, likeness: likeness{"persistentvolumes", driver, "Released",
				string(finalizer.External)},
		})
	}
	lease := func(driver string, renewed time.Time) *coordinationv1.Lease {
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: driver, Name: families.SanitizedDriver(driver)},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("leader"), LeaseDurationSeconds: ptr.To[int32](15),
				RenewTime: ptr.To(metav1.NewMicroTime(renewed))},
		}
	}
	return clustertest.Objects{
		"persistentvolumes": volumes,
		"leases":            {lease("lives.example.com", time.Now().Add(time.Hour)), lease("gone.example.com", time.Now().Add(-time.Hour))},
	}, found
}

func TestSecondCauseAmongThousandsIsFound(t *testing.T) {
	objects, found := thousands()
	explorer := NewExplorer(clustertest.NewReader(t, objects.ServeHTTP), cluster.Commands{}, false)
	groups := Survey{Items: grouped(explorer.explainAll(t.Context(), found))}.Groups()
	if len(groups) != 2 {
		t.Fatalf("%d groups, want 2", len(groups))
	}
	first, second := groups[0], groups[1]
	if first.Verdict != blocker.Stuck || first.Root.Reason != blocker.DriverMissing || len(first.Items) != 20 ||
		!strings.Contains(first.Root.Next, "gone.example.com") {
		t.Errorf("the first group has %d objects, %+v", len(first.Items), first.Root)
	}
	if second.Verdict == blocker.Stuck || second.Root.Reason != blocker.DriverDeletes || len(second.Items) != 4980 {
		t.Errorf("the second group has %d objects, %+v", len(second.Items), second.Root)
	}
}
