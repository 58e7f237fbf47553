package differential

import (
	"strings"
	"testing"
)

func TestEnumValuesHaveDistinctNames(t *testing.T) {
	names := map[string]bool{}
	for value := range verdicts {
		name := value.String()
		if names[name] || strings.HasPrefix(name, "invalid") {
			t.Errorf("verdict %d has the name %q", int(value), name)
		}
		names[name] = true
	}
}
