package csimock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/pkg/csimock"
)

// everything is a driver that can do everything, with a pool of 10 GiB.
func everything() csimock.Config {
	return csimock.Config{
		Capabilities: csimock.AllCapabilities(),
		Capacity:     10 * gib,
		OtherNodes:   []string{"other-node"},
		Topologies:   []map[string]string{{"zone": "a"}, {"zone": "b"}},
	}
}

func TestCreateVolumeRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*csi.CreateVolumeRequest)
		want   codes.Code
	}{
		"request without a name":                 {func(r *csi.CreateVolumeRequest) { r.Name = "" }, codes.InvalidArgument},
		"name of 129 bytes":                      {func(r *csi.CreateVolumeRequest) { r.Name = strings.Repeat("n", 129) }, codes.InvalidArgument},
		"name with a bell character":             {func(r *csi.CreateVolumeRequest) { r.Name = "ring\a" }, codes.InvalidArgument},
		"request without capabilities":           {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = nil }, codes.InvalidArgument},
		"capability without an access type":      {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].AccessType = nil }, codes.InvalidArgument},
		"capability without an access mode":      {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].AccessMode = nil }, codes.InvalidArgument},
		"unknown access mode":                    {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities[0].AccessMode.Mode = 99 }, codes.InvalidArgument},
		"negative capacity":                      {func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = -1 }, codes.InvalidArgument},
		"empty capacity range":                   {func(r *csi.CreateVolumeRequest) { r.CapacityRange = &csi.CapacityRange{} }, codes.InvalidArgument},
		"limit below required capacity":          {func(r *csi.CreateVolumeRequest) { r.CapacityRange.LimitBytes = 1 }, codes.InvalidArgument},
		"volume above the pool":                  {func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 11 * gib }, codes.OutOfRange},
		"volume above available capacity":        {func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 10 * gib }, codes.ResourceExhausted},
		"parameters above 4 KiB":                 {func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"k": strings.Repeat("v", 4096)} }, codes.InvalidArgument},
		"unknown mutable parameter":              {func(r *csi.CreateVolumeRequest) { r.MutableParameters = map[string]string{"size": "large"} }, codes.InvalidArgument},
		"mutable parameter without a value":      {func(r *csi.CreateVolumeRequest) { r.MutableParameters = map[string]string{"iops": ""} }, codes.InvalidArgument},
		"source without kind":                    {func(r *csi.CreateVolumeRequest) { r.VolumeContentSource = &csi.VolumeContentSource{} }, codes.InvalidArgument},
		"missing source snapshot":                {func(r *csi.CreateVolumeRequest) { r.VolumeContentSource = fromSnapshot("snap-9") }, codes.NotFound},
		"missing source volume":                  {func(r *csi.CreateVolumeRequest) { r.VolumeContentSource = fromVolume("vol-9") }, codes.NotFound},
		"topology requirements that say nothing": {func(r *csi.CreateVolumeRequest) { r.AccessibilityRequirements = &csi.TopologyRequirement{} }, codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			server, driver := start(t, everything())
			create(t, driver, volumeRequest("first"))
			request := volumeRequest("second")
			tc.change(request)
			_, err := driver.CreateVolume(t.Context(), request)
			expectCode(t, err, tc.want)
			if got := len(server.Volumes()); got != 1 {
				t.Errorf("there are %d volumes, want 1", got)
			}
		})
	}
}

func TestCreateVolumeAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*csi.CreateVolumeRequest)
		want   codes.Code
	}{
		"with the same request finds the volume":      {func(*csi.CreateVolumeRequest) {}, codes.OK},
		"with less capacity finds the volume":         {func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 1 }, codes.OK},
		"with more capacity is a conflict":            {func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 2 * gib }, codes.AlreadyExists},
		"with a lower limit is a conflict":            {func(r *csi.CreateVolumeRequest) { r.CapacityRange = &csi.CapacityRange{LimitBytes: 1} }, codes.AlreadyExists},
		"with other parameters is a conflict":         {func(r *csi.CreateVolumeRequest) { r.Parameters["tier"] = "iron" }, codes.AlreadyExists},
		"with other mutable parameters is a conflict": {func(r *csi.CreateVolumeRequest) { r.MutableParameters["iops"] = "2" }, codes.AlreadyExists},
		"with a source is a conflict":                 {func(r *csi.CreateVolumeRequest) { r.VolumeContentSource = fromVolume("vol-9") }, codes.AlreadyExists},
		"as a block volume is a conflict":             {func(r *csi.CreateVolumeRequest) { r.VolumeCapabilities = []*csi.VolumeCapability{raw()} }, codes.AlreadyExists},
		"for a place it is not at is a conflict":      {func(r *csi.CreateVolumeRequest) { r.AccessibilityRequirements = requisite("b") }, codes.AlreadyExists},
		"for several writers on one node finds the volume": {func(r *csi.CreateVolumeRequest) {
			r.VolumeCapabilities[0] = mounted(csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER)
		}, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			server, driver := start(t, everything())
			request := volumeRequest("again")
			request.Parameters = map[string]string{"tier": "gold"}
			request.MutableParameters = map[string]string{"iops": "1"}
			id := create(t, driver, request)
			tc.change(request)
			response, err := driver.CreateVolume(t.Context(), request)
			expectCode(t, err, tc.want)
			if err == nil && response.GetVolume().GetVolumeId() != id {
				t.Errorf("the second call made volume %s besides %s", response.GetVolume().GetVolumeId(), id)
			}
			if got := len(server.Volumes()); got != 1 {
				t.Errorf("there are %d volumes, want 1", got)
			}
		})
	}
}

func TestVolumeIsNotSmallerThanSource(t *testing.T) {
	_, driver := start(t, everything())
	source := volumeRequest("source")
	source.CapacityRange.RequiredBytes = 2 * gib
	id := create(t, driver, source)
	for name, tc := range map[string]struct {
		wanted *csi.CapacityRange
		code   codes.Code
		size   int64
	}{
		"without a capacity it is as large as its source": {nil, codes.OK, 2 * gib},
		"it can be larger":            {&csi.CapacityRange{RequiredBytes: 3 * gib}, codes.OK, 3 * gib},
		"smaller one is refused":      {&csi.CapacityRange{RequiredBytes: gib}, codes.OutOfRange, 0},
		"limit below it is refused":   {&csi.CapacityRange{LimitBytes: gib}, codes.OutOfRange, 0},
		"limit above it is no target": {&csi.CapacityRange{LimitBytes: 3 * gib}, codes.OK, 2 * gib},
	} {
		t.Run(name, func(t *testing.T) {
			request := volumeRequest("copy")
			request.CapacityRange, request.VolumeContentSource = tc.wanted, fromVolume(id)
			response, err := driver.CreateVolume(t.Context(), request)
			expectCode(t, err, tc.code)
			if got := response.GetVolume().GetCapacityBytes(); got != tc.size {
				t.Errorf("the volume has %d bytes, want %d", got, tc.size)
			}
			if err == nil {
				deleteVolume(t, driver, response.GetVolume().GetVolumeId())
			}
		})
	}
}

func TestDeletionReturnsCapacity(t *testing.T) {
	_, driver := start(t, everything())
	left := func() int64 {
		response, err := driver.GetCapacity(t.Context(), &csi.GetCapacityRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return response.GetAvailableCapacity()
	}
	id := create(t, driver, volumeRequest("one"))
	if got := left(); got != 9*gib {
		t.Errorf("%d bytes are left, want 9 GiB", got)
	}
	expand := &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 4 * gib}}
	if _, err := driver.ControllerExpandVolume(t.Context(), expand); err != nil {
		t.Fatal(err)
	}
	if got := left(); got != 6*gib {
		t.Errorf("%d bytes are left after expansion, want 6 GiB", got)
	}
	deleteVolume(t, driver, id)
	if got := left(); got != 10*gib {
		t.Errorf("%d bytes are left after deletion, want 10 GiB", got)
	}
}

func TestDeleteVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		id   string
		want codes.Code
	}{
		"that does not exist is done already": {"vol-000099-00000000", codes.OK},
		"without an ID is refused":            {"", codes.InvalidArgument},
		"with an ID too long is refused":      {strings.Repeat("v", 129), codes.InvalidArgument},
		"with a zero byte in it is refused":   {"vol\x00", codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			_, driver := start(t, everything())
			_, err := driver.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: tc.id})
			expectCode(t, err, tc.want)
		})
	}
}

func TestExpandVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		wanted *csi.CapacityRange
		code   codes.Code
	}{
		"to more is done":                     {&csi.CapacityRange{RequiredBytes: 2 * gib}, codes.OK},
		"to what it has is done already":      {&csi.CapacityRange{RequiredBytes: gib}, codes.OK},
		"to nothing in particular is refused": {nil, codes.InvalidArgument},
		"beyond the pool is out of range":     {&csi.CapacityRange{RequiredBytes: 11 * gib}, codes.OutOfRange},
		"beyond what is left exhausts it":     {&csi.CapacityRange{RequiredBytes: 10 * gib}, codes.ResourceExhausted},
		"below what it has is out of range":   {&csi.CapacityRange{LimitBytes: gib / 2}, codes.OutOfRange},
	} {
		t.Run(name, func(t *testing.T) {
			_, driver := start(t, everything())
			create(t, driver, volumeRequest("other"))
			id := create(t, driver, volumeRequest("one"))
			_, err := driver.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: id,
				CapacityRange: tc.wanted})
			expectCode(t, err, tc.code)
		})
	}
}

func TestModifyVolumeKeepsOtherParameters(t *testing.T) {
	server, driver := start(t, everything())
	request := volumeRequest("one")
	request.MutableParameters = map[string]string{"iops": "1", "throughput": "1"}
	id := create(t, driver, request)
	_, err := driver.ControllerModifyVolume(t.Context(), &csi.ControllerModifyVolumeRequest{
		VolumeId: id, MutableParameters: map[string]string{"iops": "2"},
	})
	expectCode(t, err, codes.OK)
	if got := fmt.Sprint(server.Volumes()[0].Mutable); got != "map[iops:2 throughput:1]" {
		t.Errorf("the mutable parameters are %s", got)
	}
}

// Hundreds of calls at a time must neither share an ID nor lose a volume.
func TestConcurrentCalls(t *testing.T) {
	server, driver := start(t, csimock.Config{})
	const count = 400
	ids := make([]string, count)
	var calls errgroup.Group
	for i := range count {
		calls.Go(func() error {
			response, err := driver.CreateVolume(t.Context(), volumeRequest(fmt.Sprintf("volume-%d", i/2)))
			ids[i] = response.GetVolume().GetVolumeId()
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := len(server.Volumes()); got != count/2 {
		t.Errorf("%d names made %d volumes", count/2, got)
	}
	for _, id := range ids {
		calls.Go(func() error {
			_, err := driver.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id})
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := server.Volumes(); len(got) != 0 {
		t.Errorf("%d volumes are left", len(got))
	}
}

// deleteVolume deletes a volume that is not in use.
func deleteVolume(t testing.TB, driver clients, id string) {
	t.Helper()
	if _, err := driver.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
		t.Fatal(err)
	}
}
