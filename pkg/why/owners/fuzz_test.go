package owners_test

import (
	"slices"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	. "github.com/exeunt-io/exeunt/pkg/why/owners"
	"github.com/exeunt-io/exeunt/test/fuzzobj"
)

// generated returns objects that own each other.
func generated(d *fuzzobj.Choices) []*metav1.ObjectMeta {
	var objects []*metav1.ObjectMeta
	for i := range 2 + d.Below(4) {
		object := &metav1.ObjectMeta{Name: strconv.Itoa(i), UID: types.UID(strconv.Itoa(i))}
		object.DeletionTimestamp = fuzzobj.Pick(d, &metav1.Time{}, nil)
		object.Finalizers = fuzzobj.Pick(d, []string{metav1.FinalizerDeleteDependents}, []string{"x"}, nil)
		for range d.Below(3) {
			yes, no := true, false
			object.OwnerReferences = append(object.OwnerReferences, metav1.OwnerReference{
				UID: types.UID(strconv.Itoa(d.Below(6))), BlockOwnerDeletion: fuzzobj.Pick(d, &yes, &no, nil),
			})
		}
		objects = append(objects, object)
	}
	return objects
}

// waitsFor reports whether the owner waits for the object, in at most the given number of steps.
func waitsFor(objects []*metav1.ObjectMeta, owner, object types.UID, steps int) bool {
	if steps == 0 {
		return false
	}
	at := slices.IndexFunc(objects, func(o *metav1.ObjectMeta) bool { return o.UID == owner })
	if at < 0 || !IsForeground(objects[at]) {
		return false
	}
	return slices.ContainsFunc(Blocking(objects, owner), func(dependent *metav1.ObjectMeta) bool {
		return dependent.UID == object || waitsFor(objects, dependent.UID, object, steps-1)
	})
}

// A cycle has exactly the objects that wait for the object and for which it waits.
func FuzzCycle(f *testing.F) {
	fuzzobj.AddSeeds(f, 60, 40)
	f.Fuzz(func(t *testing.T, data []byte) {
		objects := generated(fuzzobj.New(data))
		for _, object := range objects {
			cycle, steps := Cycle(objects, object.UID), len(objects)
			for _, other := range objects {
				want := waitsFor(objects, object.UID, other.UID, steps) && waitsFor(objects, other.UID, object.UID, steps)
				if got := slices.Contains(cycle, other); got != want {
					t.Errorf("%s in the cycle of %s: %v, want %v", other.Name, object.Name, got, want)
				}
			}
			for _, dependent := range Blocking(objects, object.UID) {
				if ReferenceTo(dependent, object.UID) < 0 {
					t.Errorf("%s blocks %s without a reference", dependent.Name, object.Name)
				}
			}
		}
	})
}
