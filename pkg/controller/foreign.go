package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// Foreign is what a cache keeps of an object that is none of ours: its name, and
// by what it could touch one of ours. A transform puts it in the object's place,
// for every version anew: an update can make the object ours, or foreign again.
// Whoever reads such a cache must expect it beside the objects.
type Foreign struct {
	namespace, name, version string
	// Subject is what an index finds it by, "" for nothing.
	Subject string
}

// NewForeign keeps the name of an object, and what an index finds it by.
func NewForeign(object metav1.Object, subject string) *Foreign {
	return &Foreign{
		namespace: object.GetNamespace(), name: object.GetName(), version: object.GetResourceVersion(),
		Subject: subject,
	}
}

// Name is the name of the object.
func (f *Foreign) Name() string { return f.name }

// GetObjectMeta tells a cache the key and the version.
func (f *Foreign) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: f.namespace, Name: f.name, ResourceVersion: f.version}
}

// OnForeignGone returns a handler that calls gone for what was foreign and is
// deleted, or is found by something else.
func OnForeignGone(gone func(*Foreign)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			old, was := before.(*Foreign)
			now, is := after.(*Foreign)
			if was && (!is || old.Subject != now.Subject) {
				gone(old)
			}
		},
		DeleteFunc: func(object any) {
			if tombstone, missed := object.(cache.DeletedFinalStateUnknown); missed {
				object = tombstone.Obj
			}
			if last, ok := object.(*Foreign); ok {
				gone(last)
			}
		},
	}
}
