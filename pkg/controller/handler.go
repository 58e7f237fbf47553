package controller

import "k8s.io/client-go/tools/cache"

// OnChange returns a handler that calls changed for an object that is new (old is
// nil) or of another version than before, and gone for one that was deleted. A
// resync that brings nothing new calls neither.
func OnChange[T Object](changed func(old, now T), gone func(T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			var none T
			if now, ok := object.(T); ok {
				changed(none, now)
			}
		},
		UpdateFunc: func(before, after any) {
			old, wasT := before.(T)
			now, isT := after.(T)
			if wasT && isT && old.GetResourceVersion() != now.GetResourceVersion() {
				changed(old, now)
			}
		},
		DeleteFunc: func(object any) {
			if tombstone, missed := object.(cache.DeletedFinalStateUnknown); missed {
				object = tombstone.Obj
			}
			if last, ok := object.(T); ok {
				gone(last)
			}
		},
	}
}
