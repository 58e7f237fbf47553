package storage

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/chain"
)

// Chains returns the chains of the kinds of this package.
func Chains() map[schema.GroupKind]chain.Chain {
	return map[schema.GroupKind]chain.Chain{
		{Kind: "PersistentVolume"}:                              explainVolume,
		{Kind: "PersistentVolumeClaim"}:                         explainClaim,
		{Group: attachmentGroup, Kind: "VolumeAttachment"}:      explainAttachment,
		{Group: attachmentGroup, Kind: "VolumeAttributesClass"}: explainAttributesClass,
		{Group: "resource.k8s.io", Kind: "ResourceClaim"}:       explainDevices,
		{Group: single.group, Kind: single.snapshot}:            single.explainSnapshot,
		{Group: single.group, Kind: single.content}:             single.explainContent,
		{Group: grouped.group, Kind: grouped.snapshot}:          grouped.explainSnapshot,
		{Group: grouped.group, Kind: grouped.content}:           grouped.explainContent,
	}
}

// Finalizers returns the chains of finalizers that objects of any kind may have.
func Finalizers() map[string]chain.FinalizerChain {
	return map[string]chain.FinalizerChain{}
}

// subject is an object that is explained, also with its type.
type subject[T any] struct {
	chain.Explorer
	object *unstructured.Unstructured
	typed  *T
}

// newSubject returns the object with its type, and false if it does not have that type.
func newSubject[T any](e chain.Explorer, object *unstructured.Unstructured) (subject[T], bool) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		e.Reader().Note("could not read %s %s: %v", object.GetKind(), object.GetName(), err)
		return subject[T]{}, false
	}
	return subject[T]{e, object, typed}, true
}

// finalizers returns a blocker for each finalizer: that of its function in special, else that
// of the table.
func (s subject[T]) finalizers(ctx context.Context, special func(finalizer string) ([]blocker.Blocker, bool)) []blocker.Blocker {
	var all []blocker.Blocker
	for _, name := range s.object.GetFinalizers() {
		if found, is := special(name); is {
			all = append(all, found...)
			continue
		}
		all = append(all, s.Finalizer(ctx, s.object, name))
	}
	return all
}
