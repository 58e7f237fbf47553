package controller

import "k8s.io/client-go/tools/cache"

// OnChange returns a handler that calls changed for an object that is new (old is
// nil) or of another version than before, and gone for one that was deleted. A
// resync that brings nothing new calls neither; an object that another one has
// replaced under its name is gone first.
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
			switch {
			case !wasT || !isT || old.GetResourceVersion() == now.GetResourceVersion():
			case old.GetUID() != now.GetUID(): // deleted and made again while nobody watched
				var none T
				gone(old)
				changed(none, now)
			default:
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
