package integration

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// step is one request of a sequence.
type step struct {
	method, contentType string
	// name is the object, "" for all; rest is a subresource and the query.
	name, rest string
	body       string
	// edit changes the object as it was read, which is the body then.
	edit func(*unstructured.Unstructured)
}

func (s step) String() string { return fmt.Sprintf("%s %s%s %s", s.method, s.name, s.rest, s.body) }

// sequence is a source of random requests. The same seed makes the same requests.
type sequence struct {
	random *rand.Rand
	group  string
	// graces are the grace periods of a DELETE, as text of JSON; "" for none.
	graces []string
	count  int
}

// steps returns the requests of one sequence.
func steps(seed uint64, group string, graces []string) []step {
	s := sequence{random: rand.New(rand.NewPCG(seed, 1)), group: group, graces: graces}
	found := []step{s.create("a"), s.create("b")}
	for len(found) < 20 {
		found = append(found, s.next())
	}
	return found
}

// of returns one of the words.
func (s *sequence) of(words ...string) string { return words[s.random.IntN(len(words))] }

// next returns any request for any object.
func (s *sequence) next() step {
	s.count++
	name := s.of("a", "a", "b", "c")
	switch s.random.IntN(12) {
	case 0, 1:
		return s.create(name)
	case 2:
		return s.put(name)
	case 3:
		return s.putStatus(name)
	case 4:
		return s.putScale(name)
	case 5, 6:
		return s.patch(name)
	case 7:
		return s.apply(name)
	case 8:
		return step{method: http.MethodGet, name: s.of(name, ""), contentType: asJSON}
	case 9:
		return s.deleteCollection()
	default:
		return s.delete(name)
	}
}

// dryRun returns the query of a dry run, more often none.
func (s *sequence) dryRun(separator string) string {
	return s.of("", "", "", "", separator+"dryRun=All")
}

func (s *sequence) finalizers() string {
	return s.of(`[]`, `["example.com/a"]`, `["example.com/a"]`, `["example.com/a","example.com/b"]`)
}

func (s *sequence) object(name, metadata string) string {
	return fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Machine","metadata":{"name":%q,"finalizers":%s%s},
		"spec":{"replicas":%d}}`, s.group, name, s.finalizers(), metadata, s.random.IntN(3))
}

func (s *sequence) create(name string) step {
	return step{method: http.MethodPost, rest: s.dryRun("?"), contentType: asJSON,
		body: s.object(name, s.of("", `,"labels":{"l":"1"}`, `,"annotations":{"n":"1"}`))}
}

func (s *sequence) put(name string) step {
	keep, label, owner := s.random.IntN(3), fmt.Sprint(s.count), s.random.IntN(4) == 0
	return step{method: http.MethodPut, name: name, rest: s.dryRun("?"), contentType: asJSON,
		edit: func(object *unstructured.Unstructured) {
			finalizers := object.GetFinalizers()
			object.SetFinalizers(finalizers[:min(len(finalizers), keep)])
			object.SetLabels(map[string]string{"l": label})
			if owner {
				object.SetDeletionGracePeriodSeconds(nil)
			}
		}}
}

func (s *sequence) putStatus(name string) step {
	phase := fmt.Sprint(s.count)
	return step{method: http.MethodPut, name: name, rest: "/status" + s.dryRun("?"), contentType: asJSON,
		edit: func(object *unstructured.Unstructured) {
			object.SetFinalizers(nil)
			_ = unstructured.SetNestedField(object.Object, phase, "status", "phase")
		}}
}

func (s *sequence) putScale(name string) step {
	replicas := int64(s.random.IntN(3))
	return step{method: http.MethodPut, name: name, rest: "/scale" + s.dryRun("?"), contentType: asJSON,
		edit: func(object *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(object.Object, replicas, "spec", "replicas")
		}}
}

func (s *sequence) patch(name string) step {
	text := s.of(
		`{"metadata":{"finalizers":null}}`,
		`{"metadata":{"finalizers":["example.com/a"]}}`,
		`{"metadata":{"finalizers":["example.com/c"]}}`,
		`{"metadata":{"labels":{"l":"2"}}}`,
		`{"metadata":{"annotations":{"n":"2"}}}`,
		`{"metadata":{"annotations":null}}`,
		`{"metadata":{"deletionTimestamp":"2030-01-01T00:00:00Z"}}`,
		`{"metadata":{"deletionGracePeriodSeconds":7}}`,
		`{"spec":{"replicas":2}}`, `{"status":{"phase":"x"}}`, `{}`, `{`)
	return step{method: http.MethodPatch, name: name, rest: s.of("", "", "/status", "/scale") + s.dryRun("?"),
		contentType: asMerge, body: text}
}

func (s *sequence) apply(name string) step {
	return step{method: http.MethodPatch, name: name, contentType: asApply,
		rest: "?fieldManager=" + s.of("x", "y") + "&force=true" + s.dryRun("&"), body: s.object(name, "")}
}

// options returns the options of a DELETE.
func (s *sequence) options() string {
	found := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions"}
	switch s.random.IntN(8) {
	case 0, 1:
		found["propagationPolicy"] = "Background"
	case 2, 3:
		found["propagationPolicy"] = "Foreground"
	case 4:
		found["propagationPolicy"] = "Orphan"
	case 5:
		found["orphanDependents"] = s.random.IntN(2) == 0
	}
	switch s.random.IntN(10) {
	case 0:
		found["dryRun"] = []string{"All"}
	case 1:
		found["preconditions"] = map[string]any{"resourceVersion": "1"}
	}
	if grace := s.of(s.graces...); grace != "" {
		found["gracePeriodSeconds"] = json.RawMessage(grace)
	}
	text, err := json.Marshal(found)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (s *sequence) delete(name string) step {
	if s.random.IntN(4) > 0 {
		return step{method: http.MethodDelete, name: name, contentType: asJSON, body: s.options()}
	}
	query := "?propagationPolicy=" + s.of("Background", "Foreground", "Orphan", "None")
	if grace := s.of(s.graces...); grace != "" {
		query += "&gracePeriodSeconds=" + grace
	}
	return step{method: http.MethodDelete, name: name, rest: query, contentType: asJSON}
}

func (s *sequence) deleteCollection() step {
	return step{method: http.MethodDelete, rest: s.of("", "?labelSelector=l%3D1"), contentType: asJSON, body: s.options()}
}
