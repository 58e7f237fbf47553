// Package enumtest checks the names of enum values in tests.
package enumtest

import (
	"fmt"
	"strings"
	"testing"
)

// ExpectNames wants distinct names from the first value to the last, and none beyond.
func ExpectNames[T interface {
	~int
	fmt.Stringer
}](t *testing.T, first, last T) {
	t.Helper()
	seen := map[string]bool{}
	for value := first; value <= last; value++ {
		if name := value.String(); seen[name] || strings.HasPrefix(name, "invalid") {
			t.Errorf("%T(%d) has the name %q", value, int(value), name)
		} else {
			seen[name] = true
		}
	}
	if beyond := last + 1; !strings.HasPrefix(beyond.String(), "invalid") {
		t.Errorf("%T(%d) has the name %q", beyond, int(beyond), beyond)
	}
}
