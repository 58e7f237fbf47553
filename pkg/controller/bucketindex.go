package controller

import (
	"hash/maphash"

	"k8s.io/client-go/tools/cache"
)

// buckets is how many index values a bucket index has. An index of client-go has a set for
// each value: 250 bytes where nearly every value has one object. Here several values share
// a set. It must fit into two bytes.
const buckets = 1 << 14

var bucketSeed = maphash.MakeSeed()

// bucketNames has all bucket names, two bytes each.
var bucketNames = func() string {
	names := make([]byte, 0, 2*buckets)
	for i := range buckets {
		names = append(names, byte(i>>8), byte(i))
	}
	return string(names)
}()

func bucketOf(value string) string {
	i := 2 * (maphash.String(bucketSeed, value) % buckets)
	return bucketNames[i : i+2]
}

// BucketIndex returns an index for values of which nearly every one has one object. It is
// read by [FromBucket].
func BucketIndex(values func(object any) []string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		found := values(object)
		names := make([]string, len(found))
		for i, value := range found {
			names[i] = bucketOf(value)
		}
		return names, nil
	}
}

// FromBucket returns the objects that the index has for the value. A bucket has objects of
// other values too: has reports whether an object has the value.
func FromBucket[T any](informer cache.SharedIndexInformer, index, value string, has func(object T) bool) []T {
	objects, err := informer.GetIndexer().ByIndex(index, bucketOf(value))
	if err != nil { // there is no such index
		return nil
	}
	var found []T
	for _, object := range objects {
		if typed, ok := object.(T); ok && has(typed) {
			found = append(found, typed)
		}
	}
	return found
}

// IsKey reports whether the key is namespace/name. It allocates nothing.
func IsKey(key, namespace, name string) bool {
	return len(key) == len(namespace)+1+len(name) &&
		key[:len(namespace)] == namespace && key[len(namespace)] == '/' && key[len(namespace)+1:] == name
}
