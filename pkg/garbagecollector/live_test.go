package garbagecollector

import (
	"errors"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

func TestOnlyNamedObjectIsAbsent(t *testing.T) {
	kind := &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Widget"},
		Resource: "widgets"}
	widgets := schema.GroupResource{Group: "g", Resource: "widgets"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"the object":              {apierrors.NewNotFound(widgets, "one"), true},
		"another object":          {apierrors.NewNotFound(widgets, "two"), false},
		"an object it depends on": {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "one"), false},
		"the path":                {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", widgets, "one", "404 page not found", 0, true), false},
		"forbidden":               {apierrors.NewForbidden(widgets, "one", errors.New("no")), false},
		"no error":                {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := namesAbsent(tc.err, kind, "one"); got != tc.want {
				t.Errorf("namesAbsent(%v) = %v", tc.err, got)
			}
		})
	}
}

// The name of an owner is text of a user, and may lead a request elsewhere: what answers there must not
// speak for another object.
func TestAnswerAboutAnotherObjectIsAnError(t *testing.T) {
	for name, tc := range map[string]struct {
		answered string
		want     bool
	}{"the object": {"dependent", true}, "another one": {"other", false}} {
		t.Run(name, func(t *testing.T) {
			s := newAPIServer(t)
			s.answer("GET "+dependentPath, http.StatusOK, partial(configMap(tc.answered, "6")))
			c := connected(t, s, Config{Clock: clocktesting.NewFakeClock(time.Unix(0, 0))})
			live, _, err := c.live.read(t.Context(), configMaps, "ns", "dependent")
			if (live != nil) != tc.want || (err == nil) != tc.want {
				t.Errorf("read = %v, %v", live, err)
			}
		})
	}
}
