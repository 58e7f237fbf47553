package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// csi returns a volume of a CSI driver.
func csi(class string, phase v1.PersistentVolumePhase, change ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{
		Spec: v1.PersistentVolumeSpec{
			StorageClassName:       class,
			VolumeMode:             ptr.To(v1.PersistentVolumeFilesystem),
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "driver"}},
		},
		Status: v1.PersistentVolumeStatus{Phase: phase},
	}
	for _, f := range change {
		f(volume)
	}
	return volume
}

func claim(namespace string, phase v1.PersistentVolumeClaimPhase,
	change ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
	claim := &v1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace},
		Spec:       v1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast")},
		Status:     v1.PersistentVolumeClaimStatus{Phase: phase},
	}
	for _, f := range change {
		f(claim)
	}
	return claim
}

func TestCountVolumes(t *testing.T) {
	block := func(volume *v1.PersistentVolume) { volume.Spec.VolumeMode = ptr.To(v1.PersistentVolumeBlock) }
	for name, tc := range map[string]struct {
		objects        []any
		total          map[volumeLabels]int
		bound, unbound map[class]int
	}{
		"no objects": {},
		"bound by phase": {
			objects: []any{csi("fast", v1.VolumeBound), csi("fast", v1.VolumeReleased), csi("fast", v1.VolumeAvailable),
				csi("fast", "")},
			total: map[volumeLabels]int{{"N/A", "Filesystem"}: 4},
			bound: map[class]int{"fast": 1}, unbound: map[class]int{"fast": 3},
		},
		"several classes and modes": {
			objects: []any{csi("fast", v1.VolumeBound), csi("", v1.VolumeBound), csi("", v1.VolumeBound, block)},
			total:   map[volumeLabels]int{{"N/A", "Filesystem"}: 2, {"N/A", "Block"}: 1},
			bound:   map[class]int{"fast": 1, "": 2},
		},
		"no mode": {
			objects: []any{csi("", v1.VolumeBound, func(volume *v1.PersistentVolume) { volume.Spec.VolumeMode = nil })},
			total:   map[volumeLabels]int{{"N/A", "Filesystem"}: 1},
			bound:   map[class]int{"": 1},
		},
		"other objects": {objects: []any{claim("ns", v1.ClaimBound), nil}},
	} {
		t.Run(name, func(t *testing.T) {
			total, byClass := tallyVolumes(counted(t, tc.objects).volumes.byKind())
			expect(t, "total", total, tc.total)
			expect(t, "bound", byClass.bound, tc.bound)
			expect(t, "unbound", byClass.unbound, tc.unbound)
		})
	}
}

func TestPlugin(t *testing.T) {
	for want, source := range map[string]v1.PersistentVolumeSource{
		"kubernetes.io/host-path": {HostPath: &v1.HostPathVolumeSource{}},
		"kubernetes.io/nfs":       {NFS: &v1.NFSVolumeSource{}},
		"N/A":                     {Local: &v1.LocalVolumeSource{}},
	} {
		volume := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: source}}
		if got := plugin(volume); got != want {
			t.Errorf("plugin(%+v) = %q, want %q", source, got, want)
		}
	}
}

func TestCountClaims(t *testing.T) {
	beta := func(claim *v1.PersistentVolumeClaim) {
		claim.Annotations = map[string]string{v1.BetaStorageClassAnnotation: "old"}
	}
	attributes := func(claim *v1.PersistentVolumeClaim) { claim.Spec.VolumeAttributesClassName = ptr.To("gold") }
	classless := func(claim *v1.PersistentVolumeClaim) { claim.Spec.StorageClassName = nil }
	for name, tc := range map[string]struct {
		objects        []any
		bound, unbound map[claimLabels]int
	}{
		"no objects": {},
		"bound by phase": {
			objects: []any{claim("a", v1.ClaimBound), claim("a", v1.ClaimBound), claim("a", v1.ClaimPending),
				claim("a", v1.ClaimLost), claim("a", "")},
			bound: map[claimLabels]int{{"a", "fast", ""}: 2}, unbound: map[claimLabels]int{{"a", "fast", ""}: 3},
		},
		"several namespaces and classes": {
			objects: []any{
				claim("a", v1.ClaimBound), claim("b", v1.ClaimBound), claim("b", v1.ClaimBound, beta),
				claim("b", v1.ClaimBound, attributes), claim("b", v1.ClaimBound, classless),
			},
			bound: map[claimLabels]int{
				{"a", "fast", ""}: 1, {"b", "fast", ""}: 1, {"b", "old", ""}: 1, {"b", "fast", "gold"}: 1, {"b", "", ""}: 1,
			},
		},
		"other objects": {objects: []any{csi("fast", v1.VolumeBound), nil}},
	} {
		t.Run(name, func(t *testing.T) {
			byLabels := tallyClaims(counted(t, tc.objects).claims.byKind())
			expect(t, "bound", byLabels.bound, tc.bound)
			expect(t, "unbound", byLabels.unbound, tc.unbound)
		})
	}
}

// expect compares counts; no counts may be nil.
func expect[L labels](t *testing.T, what string, got, want map[L]int) {
	t.Helper()
	if want == nil {
		want = map[L]int{}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(volumeLabels{}, claimLabels{})); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// counted returns a collector that has seen the events of new objects, each with a name of its own.
func counted(t *testing.T, objects []any) *Collector {
	t.Helper()
	c := NewCollector()
	volumes, claims := controller.OnChange(c.volumeChanged, c.volumeGone), controller.OnChange(c.claimChanged, c.claimGone)
	for i, object := range objects {
		if named, ok := object.(metav1.Object); ok {
			named.SetName(fmt.Sprint("object-", i))
		}
		volumes.OnAdd(object, true)
		claims.OnAdd(object, true)
	}
	return c
}

func TestCollectorHasUpstreamMetricNames(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	collector := counted(t, []any{
		csi("fast", v1.VolumeBound), csi("slow", v1.VolumeReleased), claim("ns", v1.ClaimBound), claim("ns", v1.ClaimPending),
	})
	if err := registry.CustomRegister(collector); err != nil {
		t.Fatal(err)
	}
	want := `# HELP pv_collector_bound_pv_count [ALPHA] Number of volumes that are bound
# TYPE pv_collector_bound_pv_count gauge
pv_collector_bound_pv_count{storage_class="fast"} 1
# HELP pv_collector_bound_pvc_count [ALPHA] Number of claims that are bound
# TYPE pv_collector_bound_pvc_count gauge
pv_collector_bound_pvc_count{namespace="ns",storage_class="fast",volume_attributes_class=""} 1
# HELP pv_collector_total_pv_count [ALPHA] Number of volumes
# TYPE pv_collector_total_pv_count gauge
pv_collector_total_pv_count{plugin_name="N/A",volume_mode="Filesystem"} 2
# HELP pv_collector_unbound_pv_count [ALPHA] Number of volumes that are not bound
# TYPE pv_collector_unbound_pv_count gauge
pv_collector_unbound_pv_count{storage_class="slow"} 1
# HELP pv_collector_unbound_pvc_count [ALPHA] Number of claims that are not bound
# TYPE pv_collector_unbound_pvc_count gauge
pv_collector_unbound_pvc_count{namespace="ns",storage_class="fast",volume_attributes_class=""} 1
`
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, family := range families {
		if _, err := testutil.MetricFamilyToText(&got, family); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
