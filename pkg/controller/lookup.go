package controller

import "k8s.io/client-go/tools/cache"

// Lookup returns the object with the key from the informer's store, nil if there is
// none of that type. The object is shared and must not be changed.
func Lookup[T any](informer cache.SharedIndexInformer, key string) T {
	object, _, _ := informer.GetStore().GetByKey(key) // a store in memory does not fail
	typed, _ := object.(T)
	return typed
}
