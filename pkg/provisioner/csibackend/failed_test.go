package csibackend

import (
	"context"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/runtime"
)

// full is a driver without space.
type full struct{ *able }

func (full) CreateVolume(context.Context, *spec.CreateVolumeRequest) (*spec.CreateVolumeResponse, error) {
	return nil, status.Error(codes.ResourceExhausted, "full")
}

func TestFailedCallReportsTheRequestedTopology(t *testing.T) {
	w := newWorld(t, []runtime.Object{newNode("n", "a"), newCSINode("n")}, nil)
	var reported []string
	failed := func(class string, requested *spec.TopologyRequirement) {
		for _, topology := range requested.GetRequisite() {
			reported = append(reported, class+" in "+topology.GetSegments()["zone"])
		}
	}
	call := prepare(t, &Backend{Driver: w.driver, Inputs: w.inputs}, options(nil))
	call.Volume.Spec.StorageClassName = "fast"
	for driver, want := range map[Driver]int{w.driver: 0, full{w.driver}: 1} {
		reported = nil
		_, failure := (&Backend{Driver: driver, Inputs: w.inputs, Failed: failed}).Create(t.Context(), call)
		if len(reported) != want || (failure != nil) != (want > 0) || want > 0 && reported[0] != "fast in a" {
			t.Errorf("failure %v, reported %v", failure, reported)
		}
	}
}
