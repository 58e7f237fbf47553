package garbagecollector

import (
	"errors"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/exeunt-io/exeunt/pkg/garbage/graph"
)

func TestOnlyNamedObjectIsAbsent(t *testing.T) {
	kind := &graph.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Widget"}, Resource: "widgets"}
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
