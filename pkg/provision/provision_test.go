package provision_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

func input(change ...func(*provision.Input)) provision.Input {
	policy := v1.PersistentVolumeReclaimDelete
	w := provision.Input{
		Name: "pvc-1",
		Claim: &v1.PersistentVolumeClaim{Spec: v1.PersistentVolumeClaimSpec{
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:   v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}},
		}},
		Class:      &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, ReclaimPolicy: &policy, Parameters: map[string]string{"tier": "gold"}},
		AccessMode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
	}
	for _, f := range change {
		f(&w)
	}
	return w
}

func TestRequestCarriesSizeModeAndTheDriversParametersOnly(t *testing.T) {
	request, err := provision.Request(input(func(w *provision.Input) {
		w.Class.Parameters["csi.storage.k8s.io/fstype"] = "xfs"
		w.Class.MountOptions = []string{"noatime"}
	}))
	if err != nil {
		t.Fatal(err)
	}
	mount := request.VolumeCapabilities[0].GetMount()
	if request.CapacityRange.RequiredBytes != 1<<30 || mount.FsType != "xfs" || mount.MountFlags[0] != "noatime" {
		t.Errorf("request: %v", request)
	}
	if len(request.Parameters) != 1 || request.Parameters["tier"] != "gold" {
		t.Errorf("parameters: %v, want only the driver's", request.Parameters)
	}
}

func TestABlockClaimAsksForABlockVolume(t *testing.T) {
	block := v1.PersistentVolumeBlock
	request, err := provision.Request(input(func(w *provision.Input) { w.Claim.Spec.VolumeMode = &block; w.DefaultFSType = "ext4" }))
	if err != nil || request.VolumeCapabilities[0].GetBlock() == nil {
		t.Errorf("request: %v, %v", request, err)
	}
}

func TestWhatCannotBeServedIsRefusedWithASentence(t *testing.T) {
	gold := "gold"
	for name, tc := range map[string]struct {
		change func(*provision.Input)
		names  string
	}{
		"a selector":              {func(w *provision.Input) { w.Claim.Spec.Selector = &metav1.LabelSelector{} }, "selector"},
		"a data source":           {func(w *provision.Input) { w.Claim.Spec.DataSource = &v1.TypedLocalObjectReference{} }, "data source"},
		"an attributes class":     {func(w *provision.Input) { w.Claim.Spec.VolumeAttributesClassName = &gold }, "VolumeAttributesClass"},
		"a parameter of tomorrow": {func(w *provision.Input) { w.Class.Parameters["csi.storage.k8s.io/new"] = "x" }, "csi.storage.k8s.io/new"},
		"the file system twice": {func(w *provision.Input) {
			w.Class.Parameters["fstype"] = "a"
			w.Class.Parameters["csi.storage.k8s.io/fstype"] = "b"
		}, "twice"},
		"a capacity of less than no": {func(w *provision.Input) {
			w.Claim.Spec.Resources.Requests[v1.ResourceStorage] = resource.MustParse("-1")
		}, "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := provision.Request(input(tc.change))
			var refusal *provision.Refusal
			if !errors.As(err, &refusal) || !strings.Contains(refusal.Sentence, tc.names) {
				t.Errorf("Request = %v, want a refusal that names %q", err, tc.names)
			}
		})
	}
}

func TestTheFinalizerIsInTheFirstWriteOfDeleteVolumesOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		policy v1.PersistentVolumeReclaimPolicy
		honor  bool
		want   bool
	}{
		"Delete":               {v1.PersistentVolumeReclaimDelete, true, true},
		"Retain":               {v1.PersistentVolumeReclaimRetain, true, false},
		"Delete, the gate off": {v1.PersistentVolumeReclaimDelete, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := input(func(w *provision.Input) { w.Class.ReclaimPolicy = &tc.policy })
			request, err := provision.Request(w)
			if err != nil {
				t.Fatal(err)
			}
			volume := provision.Volume(w, request, &csi.Volume{VolumeId: "h", CapacityBytes: 2 << 30}, "driver", tc.honor)
			if got := finalizer.Has(volume.Finalizers, finalizer.External); got != tc.want {
				t.Errorf("finalizers %v, want External: %v", volume.Finalizers, tc.want)
			}
			if volume.Spec.CSI.VolumeHandle != "h" || volume.Spec.Capacity.Storage().Value() != 2<<30 {
				t.Errorf("volume: %+v", volume.Spec)
			}
		})
	}
}

func TestTopologyBecomesNodeAffinity(t *testing.T) {
	w := input(func(w *provision.Input) { w.Topology = true })
	request, err := provision.Request(w)
	if err != nil {
		t.Fatal(err)
	}
	made := &csi.Volume{VolumeId: "h", AccessibleTopology: []*csi.Topology{{Segments: map[string]string{"zone": "a", "rack": "1"}}, {Segments: map[string]string{"zone": "b"}}}}
	terms := provision.Volume(w, request, made, "driver", true).Spec.NodeAffinity.Required.NodeSelectorTerms
	if len(terms) != 2 || len(terms[0].MatchExpressions) != 2 || terms[0].MatchExpressions[0].Key != "rack" {
		t.Errorf("terms: %+v", terms)
	}
	w.Topology = false
	if got := provision.Volume(w, request, made, "driver", true).Spec.NodeAffinity; got != nil {
		t.Errorf("a driver without topology got the affinity %v", got)
	}
}

func TestFlawNamesWhatCannotBeUsed(t *testing.T) {
	request := &csi.CreateVolumeRequest{CapacityRange: &csi.CapacityRange{RequiredBytes: 10}}
	for name, tc := range map[string]struct {
		volume *csi.Volume
		flawed bool
	}{
		"a good one":               {&csi.Volume{VolumeId: "h", CapacityBytes: 10}, false},
		"a driver without sizes":   {&csi.Volume{VolumeId: "h"}, false},
		"no volume at all":         {nil, true},
		"no handle":                {&csi.Volume{CapacityBytes: 10}, true},
		"a handle that is endless": {&csi.Volume{VolumeId: strings.Repeat("h", 129)}, true},
		"too small":                {&csi.Volume{VolumeId: "h", CapacityBytes: 9}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if reason := provision.Unusable(request, tc.volume); (reason != "") != tc.flawed {
				t.Errorf("Unusable = %q", reason)
			}
		})
	}
}

func TestOutcomeOfEveryCode(t *testing.T) {
	unknown := map[codes.Code]bool{codes.Canceled: true, codes.DeadlineExceeded: true, codes.Unavailable: true, codes.Aborted: true, codes.AlreadyExists: true}
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		if got := provision.OutcomeOf(code) == provision.Unknown; got != unknown[code] {
			t.Errorf("OutcomeOf(%s): unknown %v, want %v", code, got, unknown[code])
		}
	}
}
