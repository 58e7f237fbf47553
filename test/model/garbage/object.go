package garbage

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

// namespace is that of all namespaced objects but those that a slot places elsewhere.
const namespace = "ns"

// foreign is a finalizer of another component.
const foreign = "example.com/foreign"

// Kind is a kind of objects, with a counter of versions of its own.
type Kind struct {
	*graph.Kind
	// First is the version before the first write.
	First int
	// Opaque: versions are no integers.
	Opaque bool
}

// version returns the resourceVersion.
func (k *Kind) version(number int) string {
	if k.Opaque {
		return "v" + strconv.Itoa(number)
	}
	return strconv.Itoa(number)
}

func kindOf(group, kind, resource string, first int) *Kind {
	return &Kind{Kind: &graph.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, Resource: resource,
		Namespaced: true, Collected: true,
	}, First: first}
}

// Slot is a name under which an object may exist, once or again and again.
type Slot struct {
	// Kind is the number of the kind.
	Kind int
	Name string
	// Namespace is "ns" by default.
	Namespace string
}

// Ref is an owner reference.
type Ref struct {
	Owner types.UID
	// Kind is the number of the kind.
	Kind   int
	Name   string
	Blocks bool
}

// Object is one version of an object. It is never changed.
type Object struct {
	Slot, Incarnation, Version int
	Refs                       []Ref
	Deleting                   bool
	// Foreground, Orphan and Foreign are its finalizers.
	Foreground, Orphan, Foreign bool
	// Other is a field that no collector reads.
	Other int
}

// uid returns the UID of the object of the slot in its incarnation.
func uid(slot Slot, incarnation int) types.UID {
	return types.UID(slot.Name + slot.Namespace + "-" + strconv.Itoa(incarnation))
}

// waits reports whether the deletion of the object waits for its dependents.
func (o *Object) waits() bool { return o.Deleting && (o.Foreground || o.Orphan) }

// inForeground reports whether the object is deleted in the foreground.
func (o *Object) inForeground() bool { return o.Deleting && o.Foreground && !o.Orphan }

// orphans reports whether the object is deleted with the policy Orphan.
func (o *Object) orphans() bool { return o.Deleting && o.Orphan }

// finalizers returns the finalizers in their order.
func (o *Object) finalizers() []string {
	var all []string
	if o.Foreign {
		all = append(all, foreign)
	}
	if o.Foreground {
		all = append(all, metav1.FinalizerDeleteDependents)
	}
	if o.Orphan {
		all = append(all, metav1.FinalizerOrphanDependents)
	}
	return all
}

// withFinalizers returns the object with the finalizers, and false if there is an unknown one.
func (o Object) withFinalizers(all []string) (*Object, bool) {
	o.Foreign, o.Foreground, o.Orphan = slices.Contains(all, foreign),
		slices.Contains(all, metav1.FinalizerDeleteDependents), slices.Contains(all, metav1.FinalizerOrphanDependents)
	return &o, slices.Equal(o.finalizers(), all)
}

// text writes the object to a key.
func (o *Object) text(out *strings.Builder) {
	if o == nil {
		out.WriteString("-;")
		return
	}
	fmt.Fprintf(out, "%d.%d@%d", o.Slot, o.Incarnation, o.Version)
	for _, r := range o.Refs {
		fmt.Fprintf(out, ">%s/%d/%s/%t", r.Owner, r.Kind, r.Name, r.Blocks)
	}
	for _, field := range []struct {
		set  bool
		name byte
	}{{o.Deleting, 'd'}, {o.Foreground, 'f'}, {o.Orphan, 'o'}, {o.Foreign, 'x'}} {
		if field.set {
			out.WriteByte(field.name)
		}
	}
	fmt.Fprintf(out, "+%d;", o.Other)
}

// deletedAt is the deletion timestamp of all objects: no collector decides by it.
var deletedAt = metav1.Time{Time: time.Unix(1, 0)}

// metadata returns the object as the API server returns it.
func (c *Config) metadata(o *Object) *metav1.PartialObjectMetadata {
	slot := c.Slots[o.Slot]
	kind := c.Kinds[slot.Kind]
	object := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{
			Name: slot.Name, Namespace: c.namespaceOf(slot), UID: uid(slot, o.Incarnation),
			ResourceVersion: kind.version(o.Version), Finalizers: o.finalizers(),
		},
	}
	if o.Deleting {
		object.DeletionTimestamp = &deletedAt
	}
	for i := range o.Refs {
		owner := c.Kinds[o.Refs[i].Kind]
		object.OwnerReferences = append(object.OwnerReferences, metav1.OwnerReference{
			APIVersion: owner.GroupVersion().String(), Kind: owner.GroupVersionKind.Kind, Name: o.Refs[i].Name,
			UID: o.Refs[i].Owner, BlockOwnerDeletion: &o.Refs[i].Blocks,
		})
	}
	return object
}

func (c *Config) namespaceOf(slot Slot) string {
	switch {
	case !c.Kinds[slot.Kind].Namespaced:
		return ""
	case slot.Namespace != "":
		return slot.Namespace
	}
	return namespace
}
