package modelserver

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/test/model/server"
)

// Content types of patches.
const (
	jsonPatch      = "application/json-patch+json"
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
)

// generator makes requests from a seed. It looks at the cluster of the model, so that many
// requests have the right version and UID.
type generator struct {
	*rand.Rand
	prefix, namespace string
	// seen are the JSON of all objects that a client has read, by key: the source of
	// updates, most of them of an old version.
	seen map[server.Key][]string
	// deletionTime is what an edit of the deletionTimestamp sets: kube-apiserver ignores it
	// for terminating objects, but counts it as a change of the managed fields.
	deletionTime string
	// sub is the subresource of the request with its slash.
	sub string
}

func newGenerator(seed uint64, prefix, namespace string) *generator {
	return &generator{Rand: rand.New(rand.NewPCG(seed, 0)), prefix: prefix, namespace: namespace,
		seen: map[server.Key][]string{}}
}

func pick[T any](g *generator, values ...T) T {
	return values[g.IntN(len(values))]
}

// next returns the next request.
func (g *generator) next(cluster server.Cluster) server.Request {
	k := kinds[g.weighted()]
	key := server.Key{Resource: k.resource, Name: g.prefix + pick(g, "a", "b")}
	if k.namespaced {
		key.Namespace = g.namespace
	}
	if object, _ := cluster.Get(key); object.JSON != "" {
		g.seen[key] = append(g.seen[key], object.Wire())
	}
	g.deletionTime = "2020-01-02T03:04:05Z"
	if object, _ := cluster.Get(key); strings.Contains(object.JSON, `"deletionTimestamp":`) {
		g.deletionTime = server.Now
	}
	g.sub = ""
	request := server.Request{Path: k.path(key)}
	n := g.IntN(20)
	if object, _ := cluster.Get(key); object.JSON == "" && g.IntN(4) > 0 {
		n = 3 // create what does not exist, most of the time
	}
	switch {
	case n < 2:
		request.Method = "GET"
	case n < 3:
		request.Method, request.Path = "GET", k.path(server.Key{Namespace: pick(g, key.Namespace, "")})
	case n < 6:
		request.Method, request.Path = "POST", strings.TrimSuffix(request.Path, "/"+key.Name)
		request.Body = g.newObject(k, key)
	case n < 9:
		request.Method = "DELETE"
		request.Body = g.deleteOptions(cluster, key)
	case n < 13:
		request.Method = "PUT"
		request.Path += g.chooseSubresource(k)
		request.Body = g.update(k, key)
	default:
		request.Method = "PATCH"
		request.Path += g.chooseSubresource(k)
		request.ContentType, request.Body = g.patch(cluster, k, key)
	}
	// A dry run does not check the version of a new object.
	if request.Method != "GET" && !strings.Contains(request.Body, "424242") && g.IntN(20) == 0 {
		request.Query = "dryRun=All"
	}
	return request
}

func (g *generator) weighted() int {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	n := g.IntN(total)
	for i, k := range kinds {
		if n < k.weight {
			return i
		}
		n -= k.weight
	}
	return 0
}

func (g *generator) chooseSubresource(k kind) string {
	if len(k.subresources) > 0 && g.IntN(3) == 0 {
		g.sub = "/" + pick(g, k.subresources...)
	}
	return g.sub
}

func (g *generator) newObject(k kind, key server.Key) string {
	d := document{"metadata": document{"name": key.Name}}
	for _, e := range k.create(g) {
		e.apply(d)
	}
	if g.IntN(3) == 0 {
		e := g.edit(k)
		e.apply(d)
	}
	return encode(d)
}

// update returns the body of an update: an object as it was read once, with a change.
func (g *generator) update(k kind, key server.Key) string {
	seen := g.seen[key]
	if len(seen) == 0 {
		return g.newObject(k, key)
	}
	text := seen[len(seen)-1]
	if g.IntN(4) == 0 {
		text = pick(g, seen...)
	}
	var d document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		panic(err)
	}
	for range g.IntN(3) {
		g.edit(k).apply(d)
	}
	return encode(d)
}

// patch returns a patch with tests that are true most of the time.
func (g *generator) patch(cluster server.Cluster, k kind, key server.Key) (contentType, body string) {
	var edits []edit
	for range 1 + g.IntN(2) {
		edits = append(edits, g.edit(k))
	}
	switch contentType = pick(g, jsonPatch, jsonPatch, mergePatch, strategicPatch); contentType {
	case jsonPatch:
		return contentType, encode(append(g.tests(cluster, key), operations(g, edits)...))
	default:
		d := document{}
		for _, e := range edits {
			if e.value == nil {
				e.set(d, nil)
				continue
			}
			e.apply(d)
		}
		return contentType, encode(d)
	}
}

// tests returns the tests of a JSON patch.
func (g *generator) tests(cluster server.Cluster, key server.Key) []document {
	object, _ := cluster.Get(key)
	var found []document
	if g.IntN(2) == 0 {
		found = append(found, document{"op": "test", "path": "/metadata/uid",
			"value": key.UID(max(0, object.Count-g.IntN(6)/5))})
	}
	if g.IntN(4) == 0 {
		found = append(found, document{"op": "test", "path": "/metadata/resourceVersion", "value": g.version(object)})
	}
	if g.IntN(4) == 0 {
		found = append(found, document{"op": "test", "path": pick(g, "/status/phase", "/spec/claimRef/uid",
			"/metadata/finalizers/0"), "value": pick(g, "Pending", "Bound", "example.com/a", claimProtection)})
	}
	return found
}

func operations(g *generator, edits []edit) []document {
	found := make([]document, 0, len(edits))
	for _, e := range edits {
		operation := document{"op": pick(g, "add", "add", "replace"), "path": e.pointer(), "value": e.value}
		if e.value == nil {
			operation = document{"op": "remove", "path": e.pointer()}
		}
		found = append(found, operation)
	}
	return found
}

// version returns the version of the object, or an old one.
func (g *generator) version(object server.Object) string {
	return pick(g, itoa(object.Version), itoa(object.Version), itoa(max(1, object.Version-1)))
}

func (g *generator) deleteOptions(cluster server.Cluster, key server.Key) string {
	object, _ := cluster.Get(key)
	options := document{"kind": "DeleteOptions", "apiVersion": "v1"}
	preconditions := document{}
	if g.IntN(3) == 0 {
		preconditions["uid"] = key.UID(max(0, object.Count-g.IntN(4)/3))
	}
	if g.IntN(4) == 0 {
		preconditions["resourceVersion"] = g.version(object)
	}
	if len(preconditions) > 0 {
		options["preconditions"] = preconditions
	}
	if g.IntN(5) == 0 {
		options["propagationPolicy"] = pick(g, "Background", "Background", "Foreground", "Orphan")
	}
	if g.IntN(8) == 0 {
		options["gracePeriodSeconds"] = pick(g, 0, 30)
	}
	return pick(g, "", encode(options), encode(options))
}

// edit is a change of one field. A nil value removes the field.
type edit struct {
	path  []string
	value any
}

func (e edit) pointer() string {
	escaped := make([]string, len(e.path))
	for i, step := range e.path {
		escaped[i] = strings.NewReplacer("~", "~0", "/", "~1").Replace(step)
	}
	return "/" + strings.Join(escaped, "/")
}

// apply changes the document.
func (e edit) apply(d document) {
	if e.value != nil {
		e.set(d, e.value)
		return
	}
	for _, step := range e.path[:len(e.path)-1] {
		inner, ok := d[step].(document)
		if !ok {
			return
		}
		d = inner
	}
	delete(d, e.path[len(e.path)-1])
}

// set sets the field, and makes the objects around it.
func (e edit) set(d document, value any) {
	for _, step := range e.path[:len(e.path)-1] {
		inner, ok := d[step].(document)
		if !ok {
			inner = document{}
		}
		inner = maps.Clone(inner)
		d[step] = inner
		d = inner
	}
	d[e.path[len(e.path)-1]] = value
}

// edit returns a change of the metadata, or one that is special to the kind.
func (g *generator) edit(k kind) edit {
	if g.IntN(2) == 0 {
		return pick(g, slices.Concat(k.edits(g), k.edits(g))...)
	}
	return pick(g, metadataEdits(g)...)
}

func encode(value any) string {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(body)
}
