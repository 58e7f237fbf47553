package main

import (
	"testing"

	"github.com/exeunt-io/exeunt/test/faultproxy"
)

func TestFirstWritesOfSomeObjectsAreDenied(t *testing.T) {
	named := func(verb, name string, ordinal int) faultproxy.Fault {
		return faultproxy.Fault{Verb: verb, Name: name, Ordinal: ordinal}
	}
	for name, tc := range map[string]struct {
		fault faultproxy.Fault
		want  faultproxy.Kind
	}{
		"the first patch":      {named("patch", denied+"x", 0), faultproxy.DeniedNotFound},
		"the last denied one":  {named("delete", denied+"x", deniedWrites-1), faultproxy.DeniedNotFound},
		"the next one":         {named("patch", denied+"x", deniedWrites), ""},
		"a read":               {named("get", denied+"x", 0), ""},
		"another object":       {named("patch", "x", 0), ""},
		"a fault by the rates": {faultproxy.Fault{Verb: "patch", Name: "x", Kind: faultproxy.CutAfter}, faultproxy.CutAfter},
	} {
		if got := denyFirstWrites(tc.fault); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
