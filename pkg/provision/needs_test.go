package provision_test

import (
	"errors"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func pointer[T any](value T) *T { return &value }

// able is a driver with all capabilities.
var able = provision.Driver{Name: "driver", Topology: true, Snapshots: true, Clones: true, Modifies: true}

func source(group, kind, name string) *v1.TypedLocalObjectReference {
	return &v1.TypedLocalObjectReference{APIGroup: &group, Kind: kind, Name: name}
}

func TestNeedsOf(t *testing.T) {
	for name, tc := range map[string]struct {
		spec v1.PersistentVolumeClaimSpec
		want provision.Needs
	}{
		"no needs": {v1.PersistentVolumeClaimSpec{}, provision.Needs{}},
		"snapshot": {v1.PersistentVolumeClaimSpec{DataSource: source("snapshot.storage.k8s.io",
			"VolumeSnapshot", "s")}, provision.Needs{Source: storage.DataSource{Kind: storage.SourceSnapshot, Name: "s"}}},
		"claim": {v1.PersistentVolumeClaimSpec{DataSource: source("", "PersistentVolumeClaim",
			"c")}, provision.Needs{Source: storage.DataSource{Kind: storage.SourceClaim, Name: "c"}}},
		"claim without group":              {v1.PersistentVolumeClaimSpec{DataSource: &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "c"}}, provision.Needs{Source: storage.DataSource{Kind: storage.SourceClaim, Name: "c"}}},
		"dataSourceRef without dataSource": {v1.PersistentVolumeClaimSpec{DataSourceRef: &v1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "c"}}, provision.Needs{Source: storage.DataSource{Kind: storage.SourceClaim, Name: "c"}}},
		"attributes class":                 {v1.PersistentVolumeClaimSpec{VolumeAttributesClassName: pointer("gold")}, provision.Needs{AttributesClass: "gold"}},
		"empty attributes class":           {v1.PersistentVolumeClaimSpec{VolumeAttributesClassName: pointer("")}, provision.Needs{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := provision.NeedsOf(&v1.PersistentVolumeClaim{Spec: tc.spec}, classOf(), able, "pvc-1")
			if err != nil || got != tc.want {
				t.Errorf("NeedsOf = %+v, %v, want %+v", got, err, tc.want)
			}
		})
	}
}

func TestUnservableClaimIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		spec   v1.PersistentVolumeClaimSpec
		class  *storagev1.StorageClass
		driver provision.Driver
		names  string
	}{
		"selector": {spec: v1.PersistentVolumeClaimSpec{Selector: &metav1.LabelSelector{}}, driver: able, names: "elector"},
		"snapshot without capability": {spec: v1.PersistentVolumeClaimSpec{DataSource: source("snapshot.storage.k8s.io",
			"VolumeSnapshot", "s")}, names: "CREATE_DELETE_SNAPSHOT"},
		"clone without capability":      {spec: v1.PersistentVolumeClaimSpec{DataSource: source("", "PersistentVolumeClaim", "c")}, names: "CLONE_VOLUME"},
		"attributes without capability": {spec: v1.PersistentVolumeClaimSpec{VolumeAttributesClassName: pointer("gold")}, names: "MODIFY_VOLUME"},
		"snapshot of another API group": {spec: v1.PersistentVolumeClaimSpec{DataSource: source("example.com",
			"VolumeSnapshot", "s")}, driver: able, names: "example.com"},
		"data source without a name":       {spec: v1.PersistentVolumeClaimSpec{DataSource: &v1.TypedLocalObjectReference{}}, driver: able, names: "without a name"},
		"data source in another namespace": {spec: v1.PersistentVolumeClaimSpec{DataSourceRef: &v1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "c", Namespace: pointer("other")}}, driver: able, names: "other"},
		"unknown reserved parameter":       {class: classOf(prefix+"new", "x"), driver: able, names: prefix + "new"},
		"file system twice":                {class: classOf("fsType", "a", prefix+"fstype", "b"), driver: able, names: "both"},
		"same file system twice":           {class: classOf("fstype", "a", "FsType", "a"), driver: able, names: "both"},
		"secret without namespace":         {class: classOf(prefix+"secret-name", "x"), driver: able, names: prefix + "secret-namespace"},
		"negative capacity":                {spec: v1.PersistentVolumeClaimSpec{Resources: requests("-1")}, driver: able, names: "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			class := tc.class
			if class == nil {
				class = classOf()
			}
			_, err := provision.NeedsOf(&v1.PersistentVolumeClaim{Spec: tc.spec}, class, tc.driver, "pvc-1")
			var refusal *provision.Refusal
			if !errors.As(err, &refusal) || !strings.Contains(refusal.Sentence, tc.names) {
				t.Errorf("NeedsOf = %v, want a refusal that names %q", err, tc.names)
			}
		})
	}
}

func requests(size string) v1.VolumeResourceRequirements {
	return v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse(size)}}
}

func TestOtherDataSourceIsLeftToItsPopulator(t *testing.T) {
	for name, spec := range map[string]v1.PersistentVolumeClaimSpec{
		"other kind":                  {DataSourceRef: &v1.TypedObjectReference{APIGroup: pointer("hello.example.com"), Kind: "Hello", Name: "h"}},
		"claim kind of another group": {DataSourceRef: &v1.TypedObjectReference{APIGroup: pointer("example.com"), Kind: "PersistentVolumeClaim", Name: "h"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := provision.NeedsOf(&v1.PersistentVolumeClaim{Spec: spec}, classOf(), able, "pvc-1")
			var foreign *provision.LeftToOther
			if !errors.As(err, &foreign) || !strings.Contains(foreign.Sentence, *spec.DataSourceRef.APIGroup) {
				t.Errorf("NeedsOf = %v, want LeftToOther with the group", err)
			}
		})
	}
}

func TestAttributes(t *testing.T) {
	fast := &storagev1.VolumeAttributesClass{DriverName: "driver", Parameters: map[string]string{"iops": "9"}}
	if got, err := provision.Attributes("fast", fast, "driver"); err != nil || got["iops"] != "9" {
		t.Errorf("Attributes = %v, %v", got, err)
	}
	for name, class := range map[string]*storagev1.VolumeAttributesClass{"missing": nil,
		"of another driver": {DriverName: "other"}} {
		_, err := provision.Attributes("fast", class, "driver")
		if expectNotYet(t, name, err); err != nil && !strings.Contains(err.Error(), "fast") {
			t.Errorf("%s: the sentence does not name the class: %v", name, err)
		}
	}
}

func expectNotYet(t *testing.T, what string, err error) {
	t.Helper()
	var missing *provision.NotReady
	if !errors.As(err, &missing) {
		t.Errorf("%s: %v, want NotReady", what, err)
	}
}
