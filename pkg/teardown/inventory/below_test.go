package inventory_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

func TestDiskBelowKeptVolumeIsKept(t *testing.T) { // 08
	objects := []any{disk("ceph", named("osd")), data("ceph", boundTo("osd")), csi("ceph", "ceph.rbd"), csi("kube-system", "ebs")}
	kept := fill(inventory.Options{}, append(objects, disk("shop", of("ceph.rbd"), retain), data("shop"))...)
	if got, want := itemsOf(kept, now), []string{"disk keep PolicyRetain finalizer", "osd keep HoldsKeptVolumes finalizer"}; !slices.Equal(got, want) {
		t.Errorf("items %q, want %q", got, want)
	}
	if got := kept.Live(disk("ceph", named("osd"))); !got.Kept() {
		t.Errorf("%v deletes the disk below a kept volume", got)
	}
	gone := fill(inventory.Options{}, append(objects, disk("shop", of("ceph.rbd")), data("shop"))...)
	if got, want := itemsOf(gone, now), []string{"disk delete PolicyDelete finalizer", "osd delete PolicyDelete finalizer"}; !slices.Equal(got, want) {
		t.Errorf("items %q, want %q", got, want)
	}
}

func TestDiskBelowKeptSnapshotIsKept(t *testing.T) { // 08
	ofCeph := func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["driver"] = "ceph" }
	label := func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{preserve: ""}) }
	unmade := func(u *unstructured.Unstructured) { delete(u.Object, "status") }
	for name, tc := range map[string]struct {
		objects []any
		kept    bool
	}{
		"Retain":                         {[]any{snapshot(), contentWith("Retain", ofCeph)}, true},
		"Retain, its snapshot is gone":   {[]any{contentWith("Retain", ofCeph)}, true},
		"label on the snapshot":          {[]any{snapshot(label), contentWith("Delete", ofCeph)}, true},
		"label on the content":           {[]any{snapshot(), contentWith("Delete", ofCeph, label)}, true},
		"label, content is not made yet": {[]any{snapshot(label, unmade)}, true},
		"Delete":                         {[]any{snapshot(), contentWith("Delete", ofCeph)}, false},
		"Delete, its snapshot is gone":   {[]any{contentWith("Delete", ofCeph)}, false},
		"Retain, of another driver":      {[]any{snapshot(), contentWith("Retain")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			i := fill(inventory.Options{}, append(tc.objects, csi("rook", "ceph"), csi("rook", "other"),
				csi("kube-system", "ebs"), disk("rook"), data("rook"), disk("shop", named("second"), of("other")))...)
			kept := slices.Contains(itemsOf(i, now), "disk keep HoldsKeptVolumes finalizer")
			if live := i.Live(disk("rook")).Kept(); kept != tc.kept || live != tc.kept {
				t.Errorf("kept %v, live %v, want %v: %q", kept, live, tc.kept, itemsOf(i, now))
			}
		})
	}
}

func TestDriverWithoutNameMayBeThatOfKeptVolume(t *testing.T) { // 08
	pod := csi("ceph", "")
	pod.Spec.Containers[0].Args = nil
	i := fill(inventory.Options{}, disk("ceph", named("osd")), data("ceph", boundTo("osd")), pod,
		disk("shop", of("ceph.rbd"), retain), data("shop"))
	if got, want := itemsOf(i, now)[1], "osd keep HoldsKeptVolumes finalizer"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
