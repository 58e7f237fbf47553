package finalizer_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

const (
	ours    = string(finalizer.External)
	foreign = "example.com/backup"
	other   = "example.com/audit"
)

func TestWithAndWithoutKeepOrderAndInput(t *testing.T) {
	for name, tc := range map[string]struct {
		list          []string
		with, without []string
	}{
		"sole":         {[]string{ours}, []string{ours}, nil},
		"absent":       {[]string{foreign, other}, []string{foreign, other, ours}, []string{foreign, other}},
		"among others": {[]string{foreign, ours, other}, []string{foreign, ours, other}, []string{foreign, other}},
		"empty":        {[]string{}, []string{ours}, []string{}},
		"nil":          {nil, []string{ours}, nil},
		"twice":        {[]string{ours, foreign, ours}, []string{ours, foreign, ours}, []string{foreign}},
	} {
		t.Run(name, func(t *testing.T) {
			spare := append(slices.Clone(tc.list), "spare")
			list := spare[:len(tc.list)] // spare capacity detects an append into the input
			if got := finalizer.With(list, finalizer.External); !slices.Equal(got, tc.with) {
				t.Errorf("With(%v) = %v, want %v", tc.list, got, tc.with)
			}
			if got := finalizer.Without(list, finalizer.External); !slices.Equal(got, tc.without) {
				t.Errorf("Without(%v) = %v, want %v", tc.list, got, tc.without)
			} else if !finalizer.Has(list, finalizer.External) && got == nil {
				t.Errorf("Without(%v) is nil, want the list itself", tc.list)
			}
			if !slices.Equal(list, tc.list) || spare[len(tc.list)] != "spare" {
				t.Errorf("the input was changed: %v, want %v", spare, tc.list)
			}
		})
	}
}

func TestEditTestsListAndChangesOnlyOurs(t *testing.T) {
	for name, tc := range map[string]struct {
		list   []string
		change finalizer.Change
		want   string
	}{
		"add to others": {
			[]string{foreign}, finalizer.Change{Add: []finalizer.Name{finalizer.External}},
			`[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/finalizers","value":["` + foreign +
				`"]},{"op":"add","path":"/metadata/finalizers","value":["` + foreign + `","` + ours + `"]}]`,
		},
		"add to none": {
			nil, finalizer.Change{Add: []finalizer.Name{finalizer.External}},
			`[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"add","path":"/metadata/finalizers","value":["` + ours + `"]}]`,
		},
		"remove the last": {
			[]string{ours}, finalizer.Change{Remove: []finalizer.Name{finalizer.External}},
			`[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/finalizers","value":["` + ours +
				`"]},{"op":"remove","path":"/metadata/finalizers"}]`,
		},
		"exchange": {
			[]string{ours}, finalizer.Change{Add: []finalizer.Name{finalizer.InTree},
				Remove: []finalizer.Name{finalizer.External}},
			`[{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/finalizers","value":["` + ours +
				`"]},{"op":"add","path":"/metadata/finalizers","value":["kubernetes.io/pv-controller"]}]`,
		},
		"foreign finalizer is ignored": {
			[]string{foreign}, finalizer.Change{Add: []finalizer.Name{other}, Remove: []finalizer.Name{foreign}},
			`[{"op":"test","path":"/metadata/uid","value":"u"}]`,
		},
		"present finalizer is not added": {
			[]string{ours}, finalizer.Change{Add: []finalizer.Name{finalizer.External},
				Remove: []finalizer.Name{finalizer.InTree}},
			`[{"op":"test","path":"/metadata/uid","value":"u"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := &metav1.ObjectMeta{UID: "u", ResourceVersion: "7", Finalizers: tc.list}
			got, err := finalizer.Edit(patch.For(object), object, tc.change).Bytes()
			if err != nil || string(got) != tc.want {
				t.Errorf("got  %s (%v)\nwant %s", got, err, tc.want)
			}
		})
	}
}

func TestEveryFinalizerHasHolder(t *testing.T) {
	for _, name := range []finalizer.Name{finalizer.External, finalizer.InTree, finalizer.VolumeProtection,
		finalizer.ClaimProtection, finalizer.CloneSource, finalizer.SnapshotSource} {
		if holder, known := finalizer.HolderOf(string(name)); !known || holder.Component == "" || holder.Until == "" {
			t.Errorf("HolderOf(%s) = %+v, %v", name, holder, known)
		}
	}
	if _, known := finalizer.HolderOf(foreign); known {
		t.Errorf("HolderOf(%s) claims a foreign finalizer", foreign)
	}
}
