package versions

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var root = filepath.Join("..", "..")

func committed(t *testing.T) []Result {
	t.Helper()
	results, err := Load(filepath.Join(root, "docs", "versions"))
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func TestPagesShowTheRecordedResults(t *testing.T) {
	results := committed(t)
	for _, name := range []string{filepath.Join("docs", "versions.md")} {
		page, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := Update(string(page), results)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, string(page)); diff != "" {
			t.Errorf("%s does not show docs/versions, run make e2e:\n%s", name, diff)
		}
	}
}

func TestRecordedResultsHaveNoFailures(t *testing.T) {
	for _, result := range committed(t) {
		if err := result.OK(); err != nil {
			t.Error(err)
		}
	}
}

// TestResultsAreOfBuiltVersions compares them with the module files of the control plane.
func TestResultsAreOfBuiltVersions(t *testing.T) {
	required := regexp.MustCompile(`(?m)^\s+k8s\.io/kubernetes (v\S+)$`)
	var want []string
	for _, file := range []string{"go.mod", "go.1.35.mod", "go.1.34.mod"} {
		text, err := os.ReadFile(filepath.Join(root, "test", "controlplane", file))
		if err != nil {
			t.Fatal(err)
		}
		found := required.FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s requires no k8s.io/kubernetes", file)
		}
		want = append(want, string(found[1]))
	}
	results := committed(t)
	if len(results) == 0 {
		t.Error("docs/versions has no results, run make e2e")
	}
	for _, result := range results {
		if !slices.Contains(want, result.Kubernetes) {
			t.Errorf("docs/versions has results of %s, test/controlplane builds %q: run make e2e KUBE=%s", result.Kubernetes, want, result.Minor())
		}
	}
}
