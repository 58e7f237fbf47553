package server

import "strings"

// route is what the path of a request names.
type route struct {
	resource        *resourceRules
	namespace, name string
	subresource     string
}

// parse returns the route of a path, and whether the server has the resource.
func parse(path string) (route, bool) {
	group, version, segments := groupVersion(strings.Split(strings.Trim(path, "/"), "/"))
	if len(segments) == 0 {
		return route{}, false
	}
	r := route{}
	if len(segments) > 2 && segments[0] == namespaces && segments[2] != "status" && segments[2] != finalize {
		r.namespace, segments = segments[1], segments[2:]
	}
	r.resource = resources[segments[0]]
	if r.resource == nil || r.resource.group != group || r.resource.version != version || len(segments) > 3 {
		return route{}, false
	}
	if len(segments) > 1 {
		r.name = segments[1]
	}
	if len(segments) > 2 {
		r.subresource = segments[2]
	}
	return r, r.subresource == "" || r.resource.subresources[r.subresource]
}

// groupVersion returns group and version of a path, and the segments that follow.
func groupVersion(segments []string) (group, version string, rest []string) {
	switch {
	case len(segments) > 2 && segments[0] == "api":
		return "", segments[1], segments[2:]
	case len(segments) > 3 && segments[0] == "apis":
		return segments[1], segments[2], segments[3:]
	}
	return "", "", nil
}

func (r route) key() Key {
	return Key{Resource: r.resource.name, Namespace: r.namespace, Name: r.name}
}

// KeyOf returns the object that a request names; false for a list, and for a request that
// creates an object without a name.
func KeyOf(request Request) (Key, bool) {
	r, ok := parse(request.Path)
	if !ok {
		return Key{}, false
	}
	if r.name == "" && request.Method == "POST" {
		if body, err := decode(request.Body); err == nil {
			r.name, _ = text(body, "metadata", "name")
		}
	}
	return r.key(), r.name != ""
}
