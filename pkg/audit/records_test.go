package audit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// unlistingDriver lists nothing and answers every ValidateVolumeCapabilities with the code.
type unlistingDriver struct {
	Driver
	code  codes.Code
	calls atomic.Int64
}

func (d *unlistingDriver) ValidateVolumeCapabilities(context.Context,
	*csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	d.calls.Add(1)
	return nil, status.Error(d.code, "")
}

// recordServer has every PersistentVolume, with its name as its UID, unless broken.
type recordServer struct{ broken bool }

func (s recordServer) RoundTrip(request *http.Request) (*http.Response, error) {
	if s.broken {
		return nil, context.DeadlineExceeded
	}
	name := request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]
	return answerWith(request, http.StatusOK, typed("v1", "PersistentVolume", newRecord(name, name, types.UID(name), "")))
}

func TestUnansweredQuestionsEnd(t *testing.T) {
	const records = 1000
	for name, tc := range map[string]struct {
		code   codes.Code
		broken bool
		asked  int64
		want   string
	}{
		"driver answers late":     {codes.DeadlineExceeded, false, 2 * validations, "did not answer"},
		"driver is away":          {codes.Unavailable, false, 2 * validations, "did not answer"},
		"API server answers late": {codes.NotFound, true, 0, "could not read PersistentVolume"},
		"driver refuses":          {codes.InvalidArgument, false, records, "driver d does not say of 1000 PersistentVolumes, such as pv-"},
		"no volume exists":        {codes.NotFound, false, records, ""},
	} {
		t.Run(name, func(t *testing.T) {
			driver := &unlistingDriver{code: tc.code}
			cluster, err := NewCluster("c", &rest.Config{Host: "http://c", Transport: recordServer{tc.broken}})
			if err != nil {
				t.Fatal(err)
			}
			s := &survey{Config: Config{Driver: driver, Clusters: []*Cluster{cluster}}, driverName: "d",
				refs: newReferences("d")}
			for i := range records {
				s.unlisted = append(s.unlisted, unlisted{cluster, fmt.Sprintf("pv-%d", i), "h", types.UID(fmt.Sprintf("pv-%d", i))})
			}
			ghosts := s.examineRecords(t.Context())
			told := strings.Join(s.refs.incomplete, "\n")
			if calls := driver.calls.Load(); calls > tc.asked+validations || calls < tc.asked {
				t.Errorf("%d calls, want about %d", calls, tc.asked)
			}
			if !strings.Contains(told, tc.want) || (told == "") != (tc.want == "") ||
				len(s.refs.incomplete) > 2*validations+validations+1 {
				t.Errorf("incomplete: %.300s, want %s", told, tc.want)
			}
			if (len(ghosts) == records) != (tc.want == "") {
				t.Errorf("%d ghosts", len(ghosts))
			}
		})
	}
}

// filedServer has PersistentVolumes of the driver, with their names as their UIDs and handles.
type filedServer []string

func (s filedServer) RoundTrip(request *http.Request) (*http.Response, error) {
	path := request.URL.Path
	switch name := path[strings.LastIndex(path, "/")+1:]; {
	case strings.HasSuffix(path, "/persistentvolumes"):
		list := &v1.PersistentVolumeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for _, name := range s {
			list.Items = append(list.Items, *newRecord(name, name, types.UID(name), ""))
		}
		return answerWith(request, http.StatusOK, list)
	case slices.Contains(s, name):
		return answerWith(request, http.StatusOK, typed("v1", "PersistentVolume", newRecord(name, name, types.UID(name), "")))
	}
	return answerWith(request, http.StatusNotFound,
		&metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
			Details: &metav1.StatusDetails{Name: path[strings.LastIndex(path, "/")+1:]}})
}

// A file with the volumes of another zone would make every volume in it an orphan.
func TestFileWithoutRecordedVolumeNamesNoOrphan(t *testing.T) {
	for name, tc := range map[string]struct {
		file    string
		records []string
		want    bool
	}{
		"all are listed":              {`[{"handle":"a"},{"handle":"b"},{"handle":"planted"}]`, []string{"a", "b"}, true},
		"another spelling":            {`[{"handle":"zones/z/a"},{"handle":"b"}]`, []string{"a", "b"}, true},
		"no PersistentVolume exists":  {`[{"handle":"planted"}]`, nil, true},
		"one is not listed":           {`[{"handle":"a"},{"handle":"planted"}]`, []string{"a", "b"}, false},
		"the volumes of another zone": {`[{"handle":"planted"}]`, []string{"a", "b"}, false},
		"no volume":                   {`[]`, []string{"a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			// The server has no snapshots, which is asked again after pauses.
			synctest.Test(t, func(t *testing.T) { expectEnumerated(t, tc.file, tc.records, tc.want) })
		})
	}
}

func expectEnumerated(t *testing.T, file string, records []string, want bool) {
	t.Helper()
	cluster, err := NewCluster("c", &rest.Config{Host: "http://c", Transport: filedServer(records)})
	if err != nil {
		t.Fatal(err)
	}
	s := &survey{
		Config:     Config{DriverName: worldDriver, File: writeFile(t, file), Clusters: []*Cluster{cluster}},
		driverName: worldDriver,
		refs:       newReferences(worldDriver), listed: set{}, names: map[string][]sharedRecord{},
	}
	if err := errors.Join(s.selectLister(), s.firstPass(t.Context()), s.secondPass(t.Context())); err != nil {
		t.Fatal(err)
	}
	report := s.report(s.examineRecords(t.Context()))
	if report.Enumerated != want || (len(report.Orphans) > 0) && !want ||
		strings.Contains(strings.Join(report.Incomplete, ""), "another zone") == want {
		t.Errorf("enumerated %t, orphans %v, incomplete %q; want enumerated %t", report.Enumerated, report.Orphans,
			report.Incomplete, want)
	}
}
