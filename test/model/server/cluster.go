package server

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Cluster has the objects of an API server. A Cluster never changes; [Cluster.Serve]
// returns a new one that shares what did not change.
type Cluster struct {
	objects []Object // sorted by key
	memo    *memo
}

// NewCluster returns a cluster with the objects, whose keys differ. The slice must not change
// afterwards.
func NewCluster(objects ...Object) Cluster {
	byKey := func(a, b Object) int { return a.compare(b.Key) }
	if !slices.IsSortedFunc(objects, byKey) {
		objects = slices.SortedFunc(slices.Values(objects), byKey)
	}
	return Cluster{slices.Clip(objects), remembering}
}

// Objects returns the objects sorted by key, remembered deleted ones included. The caller
// must not change the slice.
func (c Cluster) Objects() []Object {
	return c.objects
}

// Get returns the object, or what is remembered of it.
func (c Cluster) Get(key Key) (Object, bool) {
	at, found := c.find(key)
	if !found {
		return Object{Key: key}, false
	}
	return c.objects[at], true
}

// With returns a cluster in which the object replaces the one of the same key.
func (c Cluster) With(object Object) Cluster {
	at, found := c.find(object.Key)
	objects := make([]Object, 0, len(c.objects)+1)
	objects = append(append(objects, c.objects[:at]...), object)
	if found {
		at++
	}
	return Cluster{append(objects, c.objects[at:]...), c.memo}
}

func (c Cluster) find(key Key) (int, bool) {
	return slices.BinarySearchFunc(c.objects, key, func(o Object, k Key) int { return o.compare(k) })
}

// ofResource returns the objects of a resource, sorted by namespace and name.
func (c Cluster) ofResource(name string) []Object {
	from, _ := c.find(Key{Resource: name})
	to := from
	for to < len(c.objects) && c.objects[to].Resource == name {
		to++
	}
	return c.objects[from:to]
}

func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Resource, other.Resource), cmp.Compare(k.Namespace, other.Namespace),
		cmp.Compare(k.Name, other.Name))
}

// UID returns the UID of the count-th object with the name.
func (k Key) UID(count int) string {
	parts := []string{"uid", k.Resource, k.Namespace, k.Name, strconv.Itoa(count)}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "-")
}

// metadata is where the metadata of every stored object begin: apiVersion and kind are
// the only fields in front of it.
const metadata = `"metadata":{`

// Wire returns the JSON of the object with its resource version, as sent to clients; ""
// for a deleted object.
func (o Object) Wire() string {
	before, after, found := strings.Cut(o.JSON, metadata)
	if !found {
		return o.JSON
	}
	return before + metadata + `"resourceVersion":"` + strconv.Itoa(o.Version) + `",` + after
}
