package audit

import (
	"testing"

	"github.com/exeunt-io/exeunt/pkg/audit/verdict"
)

// listedDriver returns a survey whose driver lists volumes, and whose file is the text. The
// volumes are candidates in both lists.
func listedDriver(t *testing.T, text string, volumes ...Volume) *survey {
	t.Helper()
	s := &survey{
		Config: Config{File: writeFile(t, text)}, lister: driverLister{}, refs: newReferences("d"), enumerated: true,
		listed: set{},
		first:  firstList{attached: set{}, sources: set{}},
		second: secondList{candidates: set{}, handles: set{}, sources: set{}},
	}
	for _, volume := range volumes {
		s.first.handles = append(s.first.handles, volume.Handle)
		s.second.candidates.add(volume.Handle)
	}
	if err := s.readDetails(); err != nil {
		t.Fatal(err)
	}
	for _, volume := range volumes {
		s.addAgain(volume)
	}
	return s
}

func TestFileProtectsVolumesOfTheDriver(t *testing.T) {
	for name, tc := range map[string]struct {
		file   string
		change func(*references)
		want   verdict.Reason
	}{
		"attached in the file":  {`[{"handle":"a","nodes":["n"]}]`, nil, verdict.Attached},
		"cloned in the file":    {`[{"handle":"b","source":"a"}]`, nil, verdict.CloneSource},
		"another name":          {`[{"handle":"a","name":"data"}]`, func(r *references) { r.attachedNames.add("name-a") }, verdict.Attached},
		"another name in entry": {`[{"handle":"a","name":"data"}]`, func(r *references) { r.entryTexts.add("name-a") }, verdict.CreationInFlight},
	} {
		t.Run(name, func(t *testing.T) {
			s := listedDriver(t, tc.file, Volume{Handle: "a", Name: "name-a", Context: map[string]string{"name": "name-a"}})
			if tc.change != nil {
				tc.change(s.refs)
			}
			report := s.report(nil)
			if len(report.Orphans) > 0 || len(report.Doubtful) != 1 || report.Doubtful[0].Reason != tc.want {
				t.Errorf("orphans %+v, doubtful %+v, want %s", report.Orphans, report.Doubtful, tc.want)
			}
		})
	}
}
