package docs_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var write = flag.Bool("write", false, "write the generated documents instead of comparing them")

// generators are the documents that repeat tables of the code.
var generators = map[string]func(t *testing.T) string{
	"finalizers.md": finalizersPage,
	"reasons.md":    reasonsPage,

	"node-termination.md": terminationPage,

	"schemas/audit.schema.json":            auditSchema,
	"schemas/forecast.schema.json":         forecastSchema,
	"schemas/node-termination.schema.json": terminationSchema,
	"schemas/teardown.schema.json":         teardownSchema,
	"schemas/why.schema.json":              whySchema,
}

func TestGeneratedDocuments(t *testing.T) {
	for name, generate := range generators {
		t.Run(name, func(t *testing.T) {
			text := generate(t)
			if *write {
				writeDocument(t, name, text)
			}
			written, err := os.ReadFile(name)
			if err != nil {
				t.Fatalf("%v; run go generate ./docs", err)
			}
			if diff := cmp.Diff(string(written), text); diff != "" {
				t.Errorf("%s is out of date, run go generate ./docs:\n%s", name, diff)
			}
		})
	}
}

func writeDocument(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
