package provision_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/exeunt-io/exeunt/pkg/provision"
)

func TestEnumValuesHaveDistinctNames(t *testing.T) {
	for enum, value := range map[string]func(int) fmt.Stringer{
		"Want":     func(i int) fmt.Stringer { return Want(i) },
		"Creation": func(i int) fmt.Stringer { return Creation(i) },
		"Entry":    func(i int) fmt.Stringer { return Entry(i) },
		"Prepared": func(i int) fmt.Stringer { return Prepared(i) },
		"Read":     func(i int) fmt.Stringer { return Read(i) },
		"Action":   func(i int) fmt.Stringer { return Action(i) },
		"Outcome":  func(i int) fmt.Stringer { return Outcome(i) },
		"Cause":    func(i int) fmt.Stringer { return Cause(i) },
		"Retry":    func(i int) fmt.Stringer { return Retry(i) },
		"Report":   func(i int) fmt.Stringer { return Report(i) },
		"Server":   func(i int) fmt.Stringer { return Server(i) },
	} {
		names := map[string]bool{}
		for i := 0; !strings.HasPrefix(value(i).String(), "invalid"); i++ {
			if name := value(i).String(); names[name] {
				t.Errorf("%s has two values %s", enum, name)
			}
			names[value(i).String()] = true
		}
		if len(names) < 3 {
			t.Errorf("%s has the names %v", enum, names)
		}
	}
}
