package server

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Serve answers a request. It returns the cluster after the request.
func (c Cluster) Serve(request Request) (Cluster, Response) {
	r, ok := parse(request.Path)
	if !ok {
		return c, Response{Code: http.StatusNotFound, Body: "404 page not found\n"}
	}
	if r.subresource == finalize && request.Method != http.MethodPut {
		return c, *methodNotAllowed()
	}
	after, answer := c.dispatch(r, request)
	if isDryRun(request) {
		return c, answer
	}
	return after, answer
}

// isDryRun reports whether the request must not change anything. The query of a deletion
// that has a body does not count.
func isDryRun(request Request) bool {
	if request.Method == http.MethodDelete && request.Body != "" {
		options, _ := deleteOptions(request)
		return len(options.DryRun) > 0
	}
	query, err := url.ParseQuery(request.Query)
	return err == nil && query.Get("dryRun") == metav1.DryRunAll
}

func (c Cluster) dispatch(r route, request Request) (Cluster, Response) {
	switch {
	case request.Method == http.MethodGet && r.name != "":
		return c, c.get(r)
	case request.Method == http.MethodGet:
		return c, c.list(r)
	case request.Method == http.MethodPost && r.name == "":
		return c.create(r, request.Body)
	case request.Method == http.MethodPut && r.name != "":
		return c.remembered(r, request, func() (Cluster, Response) { return c.put(r, request.Body) })
	case request.Method == http.MethodPatch && r.name != "":
		return c.remembered(r, request, func() (Cluster, Response) { return c.patch(r, request) })
	case request.Method == http.MethodDelete && r.name != "" && r.subresource == "":
		return c.remembered(r, request, func() (Cluster, Response) { return c.delete(r, request) })
	}
	return c, *methodNotAllowed()
}

func (c Cluster) get(r route) Response {
	object, _ := c.Get(r.key())
	if object.JSON == "" {
		return *notFound(r)
	}
	return success(object.Wire())
}

// list returns the objects of a resource. The resource version is the sum of those of all
// objects, so that it grows with every write.
func (c Cluster) list(r route) Response {
	version := 0
	var items []string
	for _, object := range c.ofResource(r.resource.name) {
		version += object.Version
		if object.JSON != "" && (r.namespace == "" || r.namespace == object.Namespace) {
			items = append(items, strings.Replace(object.Wire(), r.resource.typeMeta(), "", 1))
		}
	}
	return success(`{"kind":"` + r.resource.kind + `List","apiVersion":"` + r.resource.apiVersion() +
		`","metadata":{"resourceVersion":"` + strconv.Itoa(version) + `"},"items":[` + strings.Join(items, ",") + `]}`)
}

// typeMeta is the type in the JSON of every object; the items of a list lack it.
func (r *resourceRules) typeMeta() string {
	return `"apiVersion":"` + r.apiVersion() + `","kind":"` + r.kind + `",`
}

// store writes the document as a new version of the object, unless nothing changes.
func (c Cluster) store(object Object, d document) (Cluster, Object) {
	now := encode(d)
	if now == object.JSON {
		return c, object
	}
	return c.write(object, now)
}

// write writes a new version of the object.
func (c Cluster) write(object Object, now string) (Cluster, Object) {
	object.JSON, object.Fresh = now, false
	object.count()
	return c.With(object), object
}

// remove deletes the object and remembers its version.
func (c Cluster) remove(object Object) (Cluster, Object) {
	object.count()
	object.Fresh = false
	last := object
	object.JSON = ""
	return c.With(object), last
}

// count gives the object its next version.
func (o *Object) count() {
	o.Version, o.LostVersion = max(o.Version, o.LostVersion)+1, 0
}

// decodeObject decodes and completes an object of a request.
func (r route) decodeObject(body string) (document, error) {
	d, err := decode(body)
	if err != nil {
		return nil, err
	}
	if _, err := r.resource.schema.normalize(d); err != nil {
		return nil, err
	}
	setDefault(d, "apiVersion", r.resource.apiVersion())
	setDefault(d, "kind", r.resource.kind)
	meta := child(d, "metadata")
	if !resetsManagers(meta) {
		delete(meta, "managedFields")
	}
	delete(meta, "selfLink")
	if r.resource.defaults != nil {
		r.resource.defaults(d)
	}
	return d, nil
}

// resetsManagers reports whether the request removes the managed fields, as one empty entry
// does.
func resetsManagers(meta document) bool {
	entries, _ := meta["managedFields"].([]any)
	return len(entries) == 1 && equal(entries[0], document{})
}

// checkIdentity compares kind, namespace and name with those of the path.
func (r route) checkIdentity(d document) *Response {
	meta := child(d, "metadata")
	if d["apiVersion"] != r.resource.apiVersion() || d["kind"] != r.resource.kind {
		return badRequest("%v in version %v cannot be handled as a %s", d["kind"], d["apiVersion"], r.resource.kind)
	}
	switch namespace, ok := text(meta, "namespace"); {
	case r.namespace == "":
		delete(meta, "namespace")
	case !ok:
		meta["namespace"] = r.namespace
	case namespace != r.namespace:
		return badRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if name, _ := text(meta, "name"); r.name != "" && name != r.name {
		return badRequest("the name of the object (%s) does not match the name on the URL (%s)", name, r.name)
	}
	return nil
}

// strings returns the strings of a list.
func stringsAt(d document, path ...string) []string {
	list, _ := at(d, path...).([]any)
	values := make([]string, 0, len(list))
	for _, value := range list {
		if s, ok := value.(string); ok {
			values = append(values, s)
		}
	}
	return values
}

func asList(values []string) any {
	if len(values) == 0 {
		return nil
	}
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = value
	}
	return list
}

// addFinalizer appends the finalizer unless the object has it.
func addFinalizer(d document, finalizer string) {
	meta := child(d, "metadata")
	finalizers := stringsAt(meta, "finalizers")
	if !slices.Contains(finalizers, finalizer) {
		meta["finalizers"] = asList(append(finalizers, finalizer))
	}
}
