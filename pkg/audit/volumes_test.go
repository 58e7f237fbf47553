package audit

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// pagedDriver answers ListVolumes by a function of the token.
type pagedDriver struct {
	Driver
	calls int
	page  func(call int, token string) (*csi.ListVolumesResponse, error)
}

func (d *pagedDriver) ListVolumes(_ context.Context,
	request *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	d.calls++
	return d.page(d.calls, request.GetStartingToken())
}

// pageOf returns a page with the handles.
func pageOf(next string, handles ...string) *csi.ListVolumesResponse {
	page := &csi.ListVolumesResponse{NextToken: next}
	for _, handle := range handles {
		page.Entries = append(page.Entries, &csi.ListVolumesResponse_Entry{Volume: &csi.Volume{VolumeId: handle}})
	}
	return page
}

func TestWrongPagesEndTheList(t *testing.T) {
	handles := make([]string, pageSize+1)
	for i := range handles {
		handles[i] = fmt.Sprintf("vol-%d", i)
	}
	for name, tc := range map[string]struct {
		page func(call int, token string) (*csi.ListVolumesResponse, error)
		want string
	}{
		"repeated token":   {func(call int, _ string) (*csi.ListVolumesResponse, error) { return pageOf("t", fmt.Sprint(call)), nil }, `page token "t" is repeated`},
		"repeated volume":  {func(call int, _ string) (*csi.ListVolumesResponse, error) { return pageOf(fmt.Sprint(call), "a"), nil }, `volume "a" is listed twice`},
		"too long":         {func(int, string) (*csi.ListVolumesResponse, error) { return pageOf("", handles...), nil }, "a page has 501 entries"},
		"no handle":        {func(int, string) (*csi.ListVolumesResponse, error) { return pageOf("", ""), nil }, "an entry has no volume ID"},
		"only empty pages": {func(call int, _ string) (*csi.ListVolumesResponse, error) { return pageOf(fmt.Sprint(call)), nil }, "101 pages in a row are empty"},
		"late answer": {func(int, string) (*csi.ListVolumesResponse, error) {
			return nil, status.Error(codes.DeadlineExceeded, "")
		}, "did not answer ListVolumes in time"},
		"error": {func(int, string) (*csi.ListVolumesResponse, error) {
			return nil, status.Error(codes.Internal, "broken")
		}, "broken"},
		"token never valid": {func(int, string) (*csi.ListVolumesResponse, error) {
			return nil, status.Error(codes.Aborted, "old token")
		}, "old token"},
	} {
		t.Run(name, func(t *testing.T) {
			err := driverLister{&pagedDriver{page: tc.page}}.list(t.Context(), func() {}, func(Volume) {})
			if err == nil || !strings.Contains(plain(err), tc.want) {
				t.Errorf("error = %v, want %s", err, tc.want)
			}
		})
	}
}

func TestListStartsOverOnceAfterAborted(t *testing.T) {
	driver := &pagedDriver{page: func(call int, token string) (*csi.ListVolumesResponse, error) {
		switch {
		case token == "":
			return pageOf("next", "a"), nil
		case call == 2:
			return nil, status.Error(codes.Aborted, "the token is too old")
		}
		return pageOf("", "b"), nil
	}}
	var handles []string
	err := driverLister{driver}.list(t.Context(), func() { handles = nil },
		func(v Volume) { handles = append(handles, v.Handle) })
	if got := strings.Join(handles, " "); err != nil || got != "a b" || driver.calls != 4 {
		t.Errorf("volumes %s after %d calls, %v", got, driver.calls, err)
	}
}
