package storage_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

func local(group *string, kind string) *v1.TypedLocalObjectReference {
	return &v1.TypedLocalObjectReference{APIGroup: group, Kind: kind, Name: "from"}
}

func source(kind storage.SourceKind, namespace string) storage.DataSource {
	return storage.DataSource{Kind: kind, Namespace: namespace, Name: "from"}
}

func TestDataSourceOf(t *testing.T) {
	for name, tc := range map[string]struct {
		dataSource    *v1.TypedLocalObjectReference
		dataSourceRef *v1.TypedObjectReference
		want          []storage.DataSource
	}{
		"no data source":          {nil, nil, nil},
		"claim without group":     {local(nil, "PersistentVolumeClaim"), nil, []storage.DataSource{source(storage.SourceClaim, "ns")}},
		"claim with empty group":  {local(ptr.To(""), "PersistentVolumeClaim"), nil, []storage.DataSource{source(storage.SourceClaim, "ns")}},
		"claim of the group core": {local(ptr.To("core"), "PersistentVolumeClaim"), nil, []storage.DataSource{source(storage.SourceClaim, "ns")}},
		"reference to group core": {nil, &v1.TypedObjectReference{APIGroup: ptr.To("core"), Kind: "PersistentVolumeClaim",
			Name: "from"}, []storage.DataSource{source(storage.SourceClaim, "ns")}},
		"claim of another group":    {local(ptr.To("example.com"), "PersistentVolumeClaim"), nil, []storage.DataSource{source(storage.SourceOther, "ns")}},
		"snapshot":                  {local(ptr.To(storage.SnapshotGroup), "VolumeSnapshot"), nil, []storage.DataSource{source(storage.SourceSnapshot, "ns")}},
		"snapshot without group":    {local(nil, "VolumeSnapshot"), nil, []storage.DataSource{source(storage.SourceSnapshot, "ns")}},
		"snapshot of another group": {local(ptr.To("example.com"), "VolumeSnapshot"), nil, []storage.DataSource{source(storage.SourceOther, "ns")}},
		"kind of a populator":       {local(ptr.To("example.com"), "Image"), nil, []storage.DataSource{source(storage.SourceOther, "ns")}},
		"reference": {nil, &v1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "from"},
			[]storage.DataSource{source(storage.SourceClaim, "ns")}},
		"reference, empty namespace": {nil, &v1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "from",
			Namespace: ptr.To("")}, []storage.DataSource{source(storage.SourceClaim, "ns")}},
		"reference, other namespace": {nil, &v1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "from",
			Namespace: ptr.To("other")}, []storage.DataSource{source(storage.SourceClaim, "other")}},
		"both fields": {local(nil, "Image"), &v1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "from"},
			[]storage.DataSource{source(storage.SourceOther, "ns"), source(storage.SourceClaim, "ns")}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &v1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim"},
				Spec:       v1.PersistentVolumeClaimSpec{DataSource: tc.dataSource, DataSourceRef: tc.dataSourceRef},
			}
			before := claim.DeepCopy()
			var got []storage.DataSource
			for _, ref := range storage.DataSourceRefs(claim) {
				got = append(got, storage.DataSourceOf(ref))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("data sources = %+v, want %+v", got, tc.want)
			}
			if tc.dataSourceRef != nil && ptr.Deref(claim.Spec.DataSourceRef.Namespace, "") != ptr.Deref(before.Spec.DataSourceRef.Namespace, "") {
				t.Error("the claim was changed")
			}
		})
	}
}
