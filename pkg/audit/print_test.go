package audit

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/audit/verdict"
)

// sample has every kind of finding.
func sample() *Report {
	long := "projects/some-project/zones/europe-west1-b/disks/pvc-0a1b2c3d-0000-4000-8000-000000000001"
	return &Report{
		Orphans: []Orphan{{Handle: long, Name: "pvc-0a1b2c3d-0000-4000-8000-000000000001", Age: "3d4h", Size: "100Gi"},
			{Handle: "b\x1b[31m\u202e\n"}},
		Ghosts:   []Ghost{{Handle: "gone", Name: "pv-1", Cluster: "one"}},
		Shared:   []Shared{{Handle: "twice", Volumes: []SharedVolume{{"one", "pv-2"}, {"two", "pv-3"}}}},
		Doubtful: []Doubt{{Handle: "source", Reason: verdict.SnapshotSource}}, Enumerated: true,
		Incomplete: []string{"no right to list pods in cluster one: grant the verb list on resource pods of apiGroup \"\""},
		Driver:     "example.com", Clusters: []string{"one (https://one.example.com:6443)",
			"two (https://two.example.com:6443)"}, Recorded: 1,
	}
}

func TestTableFitsAndIsEscaped(t *testing.T) {
	var out strings.Builder
	if err := sample().Print(&out, ""); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for line := range strings.Lines(text) {
		if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("line is too long: %s", line)
		}
	}
	if !strings.HasPrefix(text, "Does this cluster own the storage system?") {
		t.Errorf("the first line does not ask who owns the storage system:\n%s", text)
	}
	for _, want := range []string{`b\x1b[31m\u202e\n`, "incomplete: no right to list pods", "SnapshotSource", "one/pv-2",
		"Clusters read: one (https://one.example.com:6443), two"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %s:\n%s", want, text)
		}
	}
}

// Nothing found is a result only if everything was read.
func TestUnreadReportDoesNotSayNothingFound(t *testing.T) {
	const nothing, unknown = "Nothing found.", "Nothing can be said: not everything could be read."
	for name, tc := range map[string]struct {
		report Report
		want   string
	}{
		"all was read":          {Report{Enumerated: true}, nothing},
		"pods were not read":    {Report{Enumerated: true, Incomplete: []string{"no right to list pods"}}, unknown},
		"volumes were not read": {Report{}, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := tc.report.Print(&out, ""); err != nil {
				t.Fatal(err)
			}
			if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); lines[len(lines)-1] != tc.want ||
				strings.Contains(out.String(), nothing) != (tc.want == nothing) {
				t.Errorf("printed, want %q at the end:\n%s", tc.want, out.String())
			}
		})
	}
}

func TestOtherFormats(t *testing.T) {
	for format, want := range map[string]string{
		"wide": "projects/some-project/zones/europe-west1-b/disks/pvc-0a1b2c3d-0000-4000-8000-000000000001",
		"name": "projects/some-project/zones/europe-west1-b/disks/pvc-0a1b2c3d-0000-4000-8000-000000000001\nb\\x1b",
		"yaml": "reason: SnapshotSource",
		"json": `"reason": "SnapshotSource"`,
	} {
		var out strings.Builder
		if err := sample().Print(&out, format); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %v\n%s", format, err, out.String())
		}
	}
}

func TestEmptyReportHasListsInJSON(t *testing.T) {
	s := &survey{refs: newReferences("example.com"), enumerated: true}
	text, err := json.Marshal(s.report(nil))
	const want = `{"orphans":[],"ghosts":[],"shared":[],"enumerated":true,"doubtful":[],"incomplete":[]}`
	if err != nil || string(text) != want {
		t.Errorf("JSON = %s, %v; want %s", text, err, want)
	}
}

func TestQuestionOnlyForMoreOrphansThanVolumes(t *testing.T) {
	for recorded, want := range map[int]bool{0: true, 1: true, 2: false, 3: false} {
		report := sample()
		report.Recorded = recorded
		if got := report.Question() != ""; got != want {
			t.Errorf("with %d recorded volumes: %v", recorded, got)
		}
	}
}

// TestQuestionIfTheListIsOfOtherVolumes lists none of the recorded volumes: the list may be that
// of another account.
func TestQuestionIfTheListIsOfOtherVolumes(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want bool
	}{
		"none is listed": {`[{"handle":"x"}]`, true},
		"one is listed":  {`[{"handle":"x"},{"handle":"a"}]`, false},
		"no orphan":      {`[]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &survey{Config: Config{DriverName: "d"}, lister: fileLister(writeFile(t, tc.text)), driverName: "d",
				refs: newReferences("d"), enumerated: true, listed: set{}}
			for _, handle := range []string{"a", "b"} {
				if _, err := s.refs.addVolume(newRecordOf("d", handle)); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(s.firstPass(t.Context()), s.secondPass(t.Context())); err != nil {
				t.Fatal(err)
			}
			if question := s.report(nil).Question(); strings.Contains(question,
				"the list of volumes has none of the 2") != tc.want {
				t.Errorf("question: %q", question)
			}
		})
	}
}

// TestQuestionIfTheDriverKnowsNoVolume has a driver that was given another storage system: it says of
// every volume that it does not exist.
func TestQuestionIfTheDriverKnowsNoVolume(t *testing.T) {
	ghosts := []Ghost{{Handle: "a"}, {Handle: "b"}}
	for name, tc := range map[string]struct {
		report Report
		want   bool
	}{
		"none is listed, and some do not exist":    {Report{Ghosts: ghosts[:1], Recorded: 2, NoneListed: true, Enumerated: true}, true},
		"one is listed":                            {Report{Ghosts: ghosts[:1], Recorded: 2, Enumerated: true}, false},
		"no list, and none exists":                 {Report{Ghosts: ghosts, Recorded: 2, NoneListed: true}, true},
		"no list, and some exist":                  {Report{Ghosts: ghosts[:1], Recorded: 2, NoneListed: true}, false},
		"none is listed, but the driver has them":  {Report{Recorded: 2, NoneListed: true, Enumerated: true}, false},
		"no volume is recorded, and none is found": {Report{Enumerated: true}, false},
	} {
		if question := tc.report.Question(); strings.HasPrefix(question,
			"Does the driver talk to the storage system of this cluster?") != tc.want {
			t.Errorf("%s: question %q", name, question)
		}
	}
}

func newRecordOf(driver, handle string) *v1.PersistentVolume {
	volume := newRecord(handle, handle, types.UID(handle), "")
	volume.Spec.CSI.Driver = driver
	return volume
}

// TestIncompleteAuditForgetsNoAge fails to list a volume in between.
func TestIncompleteAuditForgetsNoAge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for day, report := range []*Report{
		{Driver: "d", Enumerated: true, Orphans: []Orphan{{Handle: "a"}}}, {Driver: "d"}, {Driver: "d", Enumerated: true, Incomplete: []string{"no right"}},
		{Driver: "d", Enumerated: true, Orphans: []Orphan{{Handle: "a"}}},
	} {
		if err := report.Remember(path, first.Add(time.Duration(day)*24*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if day == 3 && report.Orphans[0].Age != "3d" {
			t.Errorf("age %s, want 3d", report.Orphans[0].Age)
		}
	}
}

func TestAgeIsThatOfTheFirstReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	report := &Report{Driver: "d", Orphans: []Orphan{{Handle: "a"}, {Handle: "b", Age: "9y"}},
		Doubtful: []Doubt{{Handle: "c"}}}
	if err := report.Remember(path, first); err != nil || report.Orphans[0].Age != "0s" || report.Orphans[1].Age != "9y" {
		t.Errorf("%v: %+v", err, report.Orphans)
	}
	later := &Report{Driver: "d", Orphans: []Orphan{{Handle: "a"}, {Handle: "c"}, {Handle: "new"}}}
	if err := later.Remember(path, first.Add(49*time.Hour)); err != nil || later.Orphans[0].Age != "2d1h" ||
		later.Orphans[1].Age != "2d1h" || later.Orphans[2].Age != "0s" {
		t.Errorf("%v: %+v", err, later.Orphans)
	}
	if err := (&Report{Driver: "other"}).Remember(path, first); err == nil {
		t.Error("the state of another driver was taken")
	}
	if err := os.WriteFile(path, []byte(`{"driver":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := later.Remember(path, first); err == nil {
		t.Error("a truncated state was taken")
	}
}

func TestOnlyOrphanIsAdopted(t *testing.T) {
	report := &Report{
		Driver: "example.com", Enumerated: true, Orphans: []Orphan{{Handle: "a"}},
		Doubtful: []Doubt{{Handle: "b", Reason: verdict.Attached}},
		volumes: map[string]Volume{"a": {Handle: "a", Name: "pvc-1", Size: 1 << 30,
			Context: map[string]string{"pool": "fast"}}},
	}
	adopted, err := report.Adopt("a", nil)
	if err != nil || adopted.Spec.PersistentVolumeReclaimPolicy != "Retain" ||
		adopted.Spec.StorageClassName != "exeunt-adopted" || adopted.Spec.CSI.VolumeHandle != "a" {
		t.Errorf("%v, %v", adopted, err)
	}
	again, _ := report.Adopt("a", nil)
	if diff := cmp.Diff(adopted, again); diff != "" || adopted.Spec.ClaimRef.UID == "" {
		t.Errorf("adopted twice:\n%s", diff)
	}
	for handle, want := range map[string]string{"b": "it is doubtful, Attached: a node uses it", "c": "it is not listed"} {
		_, err := report.Adopt(handle, nil)
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", handle, err)
		}
	}
}

func TestSecretsOfAdoptedVolumes(t *testing.T) {
	report := &Report{Driver: "example.com", volumes: map[string]Volume{"a": {Handle: "a", Name: "pvc-1"},
		"b": {Handle: "b"}}}
	class := func(name string) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Parameters: map[string]string{
			"csi.storage.k8s.io/provisioner-secret-name": name, "csi.storage.k8s.io/provisioner-secret-namespace": "storage",
			"csi.storage.k8s.io/node-stage-secret-name": "stage", "csi.storage.k8s.io/node-stage-secret-namespace": "storage",
		}}
	}
	adopted, err := report.Adopt("a", class("of-${pv.name}"))
	if err != nil || adopted.Annotations["volume.kubernetes.io/provisioner-deletion-secret-name"] != "of-pvc-1" ||
		adopted.Spec.CSI.NodeStageSecretRef.Name != "stage" {
		t.Errorf("%+v, %v", adopted, err)
	}
	if _, err := report.Adopt("a", class("${pvc.name}")); err == nil ||
		!strings.Contains(err.Error(), "built from the claim") {
		t.Errorf("a secret named for the claim: %v", err)
	}
	if _, err := report.Adopt("b", class("${pv.name}")); err == nil ||
		!strings.Contains(err.Error(), "the name of the volume") {
		t.Errorf("a secret named for an unknown name: %v", err)
	}
}
