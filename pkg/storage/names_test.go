package storage_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

func TestEveryEnumValueHasItsOwnName(t *testing.T) {
	expectNames(t, storage.PolicyUnknown, storage.PolicyDelete)
	expectNames(t, storage.PhasePending, storage.PhaseFailed)
	expectNames(t, storage.SourceNone, storage.SourceOther)
	expectNames(t, storage.RecordAbsent, storage.RecordConflict)
	expectNames(t, storage.ClaimNone, storage.ClaimElsewhere)
}

// expectNames wants distinct names from first to last, and none beyond.
func expectNames[T interface {
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
