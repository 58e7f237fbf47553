package owners_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/why/owners"
)

// world has count objects. Bit i*count+j of edges makes object i own object j; bit i of
// foreground deletes object i in the foreground.
func world(count, edges, foreground int) []*metav1.PartialObjectMetadata {
	objects := make([]*metav1.PartialObjectMetadata, count)
	for i := range objects {
		objects[i] = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid(i)}}
		if foreground>>i&1 != 0 {
			objects[i].DeletionTimestamp, objects[i].Finalizers = &metav1.Time{}, []string{metav1.FinalizerDeleteDependents}
		}
	}
	for i := range count {
		for j := range count {
			if edges>>(i*count+j)&1 != 0 {
				objects[j].OwnerReferences = append(objects[j].OwnerReferences,
					metav1.OwnerReference{UID: uid(i), BlockOwnerDeletion: new(true)})
			}
		}
	}
	return objects
}

func uid(i int) types.UID { return types.UID(fmt.Sprint(i)) }

// collect plays the garbage collector until nothing changes: owners without blocking
// dependents lose the finalizer and go, and so does everything that is not foreground.
func collect(objects []*metav1.PartialObjectMetadata) []*metav1.PartialObjectMetadata {
	for {
		rest := slices.DeleteFunc(slices.Clone(objects), func(object *metav1.PartialObjectMetadata) bool {
			return !owners.IsForeground(object) || len(owners.Blocking(objects, object.UID)) == 0
		})
		if len(rest) == len(objects) {
			return rest
		}
		objects = rest
	}
}

func TestCycleIsWhatNeverGoes(t *testing.T) {
	for foreground := range 8 {
		for edges := range 512 {
			objects := world(3, edges, foreground)
			left := collect(objects)
			inCycle := slices.ContainsFunc(objects,
				func(o *metav1.PartialObjectMetadata) bool { return owners.Cycle(objects, o.UID) != nil })
			if inCycle != (len(left) > 0) {
				t.Errorf("edges %b, foreground %b: a cycle is %v, and %d objects never go", edges, foreground, inCycle, len(left))
			}
			for _, object := range objects {
				expectCycle(t, objects, left, object)
			}
		}
	}
}

// expectCycle wants members that all wait, name each other, and agree on the cycle.
func expectCycle(t *testing.T, objects, left []*metav1.PartialObjectMetadata, object *metav1.PartialObjectMetadata) {
	t.Helper()
	cycle := owners.Cycle(objects, object.UID)
	if cycle == nil {
		return
	}
	if !slices.Contains(cycle, object) {
		t.Errorf("the cycle of %s does not have it", object.UID)
	}
	for _, member := range cycle {
		if !slices.Contains(left, member) {
			t.Errorf("member %s of a cycle goes", member.UID)
		}
		if !slices.Equal(owners.Cycle(objects, member.UID), cycle) {
			t.Errorf("members %s and %s have different cycles", member.UID, object.UID)
		}
	}
}

func TestRemovedReferenceBreaksCycleOfTwo(t *testing.T) {
	objects := world(2, 0b0110, 0b11)
	if len(owners.Cycle(objects, uid(0))) != 2 {
		t.Fatal("two objects that own each other are no cycle")
	}
	i := owners.ReferenceTo(objects[1], uid(0))
	objects[1].OwnerReferences = slices.Delete(objects[1].OwnerReferences, i, i+1)
	if left := collect(objects); len(left) != 0 {
		t.Errorf("without the reference, %d objects never go", len(left))
	}
}

func TestBlockingNeedsUIDAndFlag(t *testing.T) {
	objects := world(3, 0b010, 0)
	objects[2].OwnerReferences = []metav1.OwnerReference{{UID: uid(0)}}
	if got := owners.Blocking(objects, uid(0)); len(got) != 1 || got[0].UID != uid(1) {
		t.Errorf("Blocking() = %v, want object 1 alone", got)
	}
	if owners.ReferenceTo(objects[2], uid(0)) != -1 {
		t.Error("a reference without blockOwnerDeletion blocks")
	}
}
