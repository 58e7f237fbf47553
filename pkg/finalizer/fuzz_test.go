package finalizer_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	. "github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// A change of finalizers keeps all finalizers of others in their order, tests what it was
// based on, and is idempotent. The list of the object never changes.
func FuzzEdit(f *testing.F) {
	f.Add("kubernetes.io/pv-protection,example.com/mine", "kubernetes.io/pv-controller", "kubernetes.io/pv-protection")
	f.Add("", "kubernetes.io/pvc-protection", "")
	f.Add("a,a,kubernetes.io/pv-protection,kubernetes.io/pv-protection,a", "a", "a")
	f.Fuzz(func(t *testing.T, list, add, remove string) {
		if !utf8.ValidString(list + add) {
			return // the API server accepts UTF-8 only
		}
		var finalizers []string
		if list != "" {
			finalizers = strings.Split(list, ",")
		}
		object := &metav1.ObjectMeta{UID: "u", ResourceVersion: "3", Finalizers: finalizers}
		before := slices.Clone(finalizers)
		change := Change{Add: []Name{Name(add)}, Remove: []Name{Name(remove)}}
		after, tested := apply(t, Edit(patch.For(object), object, change), before)
		if !slices.Equal(object.Finalizers, before) {
			t.Fatalf("changed the list %q to %q", before, object.Finalizers)
		}
		if !slices.Equal(after, before) && !tested {
			t.Errorf("change of %q to %q tests nothing", before, after)
		}
		others := func(list []string) []string {
			return slices.DeleteFunc(slices.Clone(list), func(name string) bool { _, ours := HolderOf(name); return ours })
		}
		if !slices.Equal(others(before), others(after)) {
			t.Errorf("finalizers of others %q became %q", others(before), others(after))
		}
		again := &metav1.ObjectMeta{UID: "u", ResourceVersion: "3", Finalizers: after}
		if add != remove && !Edit(patch.For(again), again, change).Empty() {
			t.Errorf("second change of %q is not empty", after)
		}
	})
}

// apply returns the finalizers after the patch, and whether the patch tests the list or the
// version.
func apply(t *testing.T, p *patch.Patch, list []string) (after []string, tested bool) {
	t.Helper()
	text, err := p.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	var operations []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(text, &operations); err != nil {
		t.Fatalf("patch %s: %v", text, err)
	}
	after = list
	for _, operation := range operations {
		switch operation.Op {
		case "test":
			tested = tested || operation.Path != "/metadata/uid"
		case "remove":
			after = nil
		default:
			after = nil
			if err := json.Unmarshal(operation.Value, &after); err != nil {
				t.Fatalf("patch %s: %v", text, err)
			}
		}
	}
	return after, tested
}
