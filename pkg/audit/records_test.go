package audit

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// unlistingDriver lists nothing and answers every ValidateVolumeCapabilities with the code.
type unlistingDriver struct {
	Driver
	code  codes.Code
	calls atomic.Int64
}

func (d *unlistingDriver) ValidateVolumeCapabilities(context.Context, *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
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
			s := &survey{Config: Config{Driver: driver, Clusters: []*Cluster{cluster}}, driverName: "d", refs: newReferences("d")}
			for i := range records {
				s.unlisted = append(s.unlisted, unlisted{cluster, fmt.Sprintf("pv-%d", i), "h", types.UID(fmt.Sprintf("pv-%d", i))})
			}
			ghosts := s.examineRecords(t.Context())
			told := strings.Join(s.refs.incomplete, "\n")
			if calls := driver.calls.Load(); calls > tc.asked+validations || calls < tc.asked {
				t.Errorf("%d calls, want about %d", calls, tc.asked)
			}
			if !strings.Contains(told, tc.want) || (told == "") != (tc.want == "") || len(s.refs.incomplete) > 2*validations+validations+1 {
				t.Errorf("incomplete: %.300s, want %s", told, tc.want)
			}
			if (len(ghosts) == records) != (tc.want == "") {
				t.Errorf("%d ghosts", len(ghosts))
			}
		})
	}
}
