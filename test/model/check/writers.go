package check

import (
	"slices"
	"time"
)

// requestIndex finds the requests that may have written a version.
type requestIndex struct {
	// byObject are the requests by resource, namespace and name, sorted by their end.
	byObject map[objectKey][]Request
	// longest is the duration of the longest request.
	longest time.Duration
	// written are the versions of requests that certainly wrote them, by request number.
	written map[int]write
}

// write is one version of an object. The entries of a Lease are written together.
type write struct {
	epoch    int
	revision uint64
}

func indexed(requests []Request) requestIndex {
	index := requestIndex{byObject: map[objectKey][]Request{}, written: map[int]write{}}
	for _, request := range requests {
		key := objectKey{resource: request.Resource, namespace: request.Namespace, name: request.Name}
		index.byObject[key] = append(index.byObject[key], request)
		index.longest = max(index.longest, request.Ended.Sub(request.Began))
	}
	for _, list := range index.byObject {
		slices.SortFunc(list, func(a, b Request) int { return a.Ended.Compare(b.Ended) })
	}
	return index
}

// writers returns the requests that may have written the version: the one with its resource
// version, or all whose time fits.
func (x requestIndex) writers(v *version) []Request {
	own, whole := v.key, v.key
	own.entry, whole.entry, whole.name = "", "", ""
	var all []Request
	for _, key := range []objectKey{own, whole} {
		fitting, exact := x.fitting(key, v)
		if exact {
			return fitting
		}
		all = append(all, fitting...)
	}
	return all
}

// fitting returns the requests with the key whose time fits the version. exact: the only
// one has the resource version.
func (x requestIndex) fitting(key objectKey, v *version) (all []Request, exact bool) {
	list := x.byObject[key]
	first, _ := slices.BinarySearchFunc(list, v.after, func(r Request,
		after time.Time) int {
		return r.Ended.Compare(after)
	})
	for _, request := range list[first:] {
		switch {
		case request.Ended.Add(-x.longest).After(v.before): // as all that follow
			return all, false
		case request.Began.After(v.before) || x.wroteAnother(request, v):
		case request.Version == "":
			all = append(all, request)
		case revisionOf(request.Version) == v.revision:
			return []Request{request}, true
		}
	}
	return all, false
}

// wroteAnother reports whether the request certainly wrote another version: it writes one
// only, unless it is for a whole namespace.
func (x requestIndex) wroteAnother(request Request, v *version) bool {
	other, certain := x.written[request.number]
	return certain && other != write{v.epoch, v.revision}
}

// note remembers the only request that may have written the version.
func (x requestIndex) note(v *version, writers []Request) {
	if len(writers) == 1 && writers[0].Name != "" {
		x.written[writers[0].number] = write{v.epoch, v.revision}
	}
}
