package faultproxy

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// request is what the decisions know of a request.
type request struct {
	verb        string
	group       string
	resource    string
	subresource string
	namespace   string
	name        string
	// path of a request without resource.
	path  string
	query url.Values
	// version is the resourceVersion of the object in the body of a PUT.
	version string
}

var (
	infos = apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
		GrouplessAPIPrefixes: sets.NewString("api")}
	uids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	// writes are the verbs that change objects.
	writes = []string{"create", "update", "patch", "delete", "deletecollection"}
)

// readRequest parses r. The body of a create or update is read and can be read again.
func readRequest(r *http.Request) (*request, error) {
	info, err := infos.NewRequestInfo(r)
	if err != nil {
		return nil, fmt.Errorf("parse request: %w", err)
	}
	parsed := &request{
		verb: info.Verb, group: info.APIGroup, resource: info.Resource, subresource: info.Subresource,
		namespace: info.Namespace, name: info.Name, query: r.URL.Query(),
	}
	if !info.IsResourceRequest {
		parsed.path = r.URL.Path
	}
	if parsed.verb != "create" && parsed.verb != "update" {
		return parsed, nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	meta := metadataOf(body)
	parsed.version = meta.ResourceVersion
	if parsed.name == "" {
		parsed.name = meta.Name
	}
	return parsed, nil
}

// key names the requests that are counted together. Names of events contain the time, and
// UIDs are random: neither is part of the key.
func (r *request) key() string {
	name := uids.ReplaceAllString(r.name, "uid")
	if r.resource == "events" {
		name = ""
	}
	return strings.Join([]string{
		r.verb, r.group, r.resource, r.subresource, r.namespace, name, r.path,
		r.query.Get("labelSelector"), r.query.Get("fieldSelector"),
	}, " ")
}

// groupResource is the resource in errors.
func (r *request) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.group, Resource: r.resource}
}

func (r *request) isWrite() bool { return slices.Contains(writes, r.verb) }

// namesVersion reports whether the request names a resourceVersion other than 0.
func (r *request) namesVersion() bool {
	version := r.query.Get("resourceVersion")
	return version != "" && version != "0"
}

// isExact reports whether the request must be answered with the state at its version.
func (r *request) isExact() bool {
	match := r.query.Get("resourceVersionMatch")
	return match == "Exact" || match == "" && r.namesVersion() && r.query.Has("limit")
}

// isWatchList reports whether a watch begins with all objects.
func (r *request) isWatchList() bool { return r.verb == "watch" && r.query.Has("sendInitialEvents") }

// mayBeStale reports whether the answer may be older than the state of etcd, and how old
// is a matter of the API server.
func (r *request) mayBeStale() bool {
	return r.verb == "list" && r.query.Get("resourceVersion") != "" && !r.query.Has("continue") && !r.isExact()
}

// allows reports whether a real API server or network can make such a fault in the request.
func (r *request) allows(kind Kind) bool {
	switch kind {
	case Conflict:
		return r.verb == "patch" || r.verb == "update" && r.version != ""
	case UnknownPath:
		return r.name != ""
	case DeniedNotFound, DeniedConflict, DeniedInvalid, DeniedForbidden, DeniedGone:
		return r.isWrite() && r.name != ""
	case CutAfter, ErrorAfter, TimeoutAfter:
		return r.isWrite()
	case SlowList:
		return r.verb == "list"
	case StaleList:
		return r.mayBeStale()
	case TooLargeVersion:
		return r.namesVersion() && (r.mayBeStale() || r.isWatchList())
	case Gone:
		return r.continues()
	default:
		return true
	}
}

// continues reports whether the request is for what comes after a version that may be compacted.
func (r *request) continues() bool {
	return r.verb == "watch" && r.namesVersion() && !r.isWatchList() || r.verb == "list" && r.query.Has("continue")
}

// title names the resource in a Fault.
func (r *request) title() string {
	parts := slices.DeleteFunc([]string{r.group, r.resource, r.subresource, r.path},
		func(part string) bool { return part == "" })
	return strings.Join(parts, "/")
}
