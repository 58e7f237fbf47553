package runner

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// A plan that is saved after the start misses what was gone by then, and each report says so.
func TestPlanThatIsSavedAgainSaysWhatItLacks(t *testing.T) {
	for _, started := range []bool{false, true} {
		object := deletedAlive(started)
		r := newTestRunner(t, object)
		r.current, r.commanded = object, object.UID
		s := newSession(r, nil, object, time.Time{})
		s.record.saved = map[string]int{}
		if err := s.savePlan(t.Context(), view{}); err != nil {
			t.Fatal(err)
		}
		found, err := r.loadRecord(t.Context(), "old")
		if err != nil || (len(found.lacking) == 1) != started {
			t.Errorf("started %t: the record lacks %q, %v", started, found.lacking, err)
		}
		if err := s.saveReport(t.Context(), teardown.Decision{Phase: teardown.Complete}, view{}); err != nil {
			t.Fatal(err)
		}
		report, err := r.recordedReport(t.Context())
		if err != nil || (len(report.Incomplete) == 1) != started {
			t.Errorf("started %t: the report lacks %q, %v", started, report.Incomplete, err)
		}
	}
}

// Somebody deleted or edited a part of the record of a complete teardown.
func TestReportSaysWhichPartIsLost(t *testing.T) {
	object := deletedAlive(true)
	var items []teardown.Item
	for i := range maxItems + 1 {
		items = append(items, teardown.Item{Kind: teardown.Volume, Plan: teardown.PlanDelete, Fate: teardown.Gone,
			Object: teardown.Object{Kind: "PersistentVolume", Name: "v", UID: strconv.Itoa(i)}})
	}
	empty, err := pack(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		part string
		data []byte
		want string
	}{
		"nothing is lost":      {"", nil, ""},
		"the first is lost":    {"-0", nil, "ConfigMap exeunt-teardown-report-0 of the report is lost"},
		"the last is lost":     {"-1", nil, "ConfigMap exeunt-teardown-report-1 of the report is lost"},
		"an item is missing":   {"-1", empty, "the report was edited: it counts 2001 items and names 2000"},
		"one cannot be read":   {"-0", []byte("x"), "ConfigMap exeunt-teardown-report-0 was edited"},
		"the document is lost": {"", []byte{}, "the record of the teardown was edited"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestRunner(t, object)
			r.current, r.commanded = object, object.UID
			s := newSession(r, nil, object, time.Time{})
			s.record = recording{saved: map[string]int{}, planned: true, next: 1}
			if err := s.saveReport(t.Context(), teardown.Decision{Phase: teardown.Complete}, view{items: items}); err != nil {
				t.Fatal(err)
			}
			spoil(t, r, reportName+tc.part, tc.data)
			report, err := r.recordedReport(t.Context())
			text := strings.Join(report.Incomplete, "; ")
			if err != nil || !strings.HasPrefix(text, tc.want) || tc.want == "" && text != "" {
				t.Errorf("the report lacks %q, %v", text, err)
			}
		})
	}
}

// spoil deletes a part of the report, or replaces its items. Without data the document itself stays.
func spoil(t *testing.T, r *Runner, name string, data []byte) {
	t.Helper()
	maps := r.Objects.CoreV1().ConfigMaps(Namespace)
	switch {
	case name == reportName && data == nil:
		return
	case data == nil:
		if err := maps.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	found, err := maps.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found.Data, found.BinaryData = nil, map[string][]byte{itemsKey: data}
	if _, err := maps.Update(t.Context(), found, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A follower counts what the status names by the kinds of items, as a leader and the metric do.
func TestFollowerCountsByKindOfItem(t *testing.T) {
	status := &alive.Status{RemainingCount: 60}
	for _, kind := range []string{"PersistentVolume", "PersistentVolumeClaim", "VolumeSnapshot", "VolumeSnapshotContent", "Service",
		"Ingress", "Gateway", alive.Kind} {
		status.Remaining = append(status.Remaining, alive.Remaining{Object: alive.Object{Kind: kind}})
	}
	want := map[string]int{"Volume": 2, "Snapshot": 2, "LoadBalancer": 1, "Ingress": 1, "Gateway": 1, "Participant": 1}
	if got := followedProgress(status); !maps.Equal(got.Left, want) || got.More != 52 {
		t.Errorf("%+v, want %v and 52 more", got, want)
	}
}
