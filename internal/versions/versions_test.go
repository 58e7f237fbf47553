package versions

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const stream = `{"Action":"run","Package":"github.com/exeunt-io/exeunt/test/e2e/a","Test":"TestGood"}
{"Action":"output","Package":"github.com/exeunt-io/exeunt/test/e2e/a","Test":"TestGood","Output":"quiet\n"}
{"Action":"attr","Package":"github.com/exeunt-io/exeunt/test/e2e/a","Test":"TestGood/one","Key":"scenario","Value":"equal"}
{"Action":"pass","Package":"github.com/exeunt-io/exeunt/test/e2e/a","Test":"TestGood/one"}
{"Action":"attr","Package":"github.com/exeunt-io/exeunt/test/e2e/a","Test":"TestGood/two","Key":"scenario","Value":"intended"}
{"Action":"pass","Package":"github.com/exeunt-io/exeunt/test/e2e/a","Test":"TestGood/two"}
{"Action":"attr","Package":"github.com/exeunt-io/exeunt/test/e2e/a","Test":"TestGood","Key":"unavailable","Value":"the feature"}
{"Action":"attr","Package":"github.com/exeunt-io/exeunt/test/e2e/a","Test":"TestGood/two","Key":"unavailable","Value":"the feature"}
{"Action":"pass","Package":"github.com/exeunt-io/exeunt/test/e2e/a","Test":"TestGood"}
{"Action":"output","Package":"github.com/exeunt-io/exeunt/test/e2e/a","Test":"TestBad","Output":"bad: 1\n"}
{"Action":"output","Package":"github.com/exeunt-io/exeunt/test/e2e/a","Test":"TestBad/inner","Output":"bad: 2\n"}
{"Action":"fail","Package":"github.com/exeunt-io/exeunt/test/e2e/a","Test":"TestBad/inner"}
{"Action":"fail","Package":"github.com/exeunt-io/exeunt/test/e2e/a","Test":"TestBad"}
{"Action":"skip","Package":"github.com/exeunt-io/exeunt/test/e2e/a","Test":"TestGood/three"}
{"Action":"output","Package":"github.com/exeunt-io/exeunt/test/e2e/a","Output":"FAIL a 1s\n"}
{"Action":"fail","Package":"github.com/exeunt-io/exeunt/test/e2e/a"}
{"Action":"output","Package":"github.com/exeunt-io/exeunt/test/e2e/b","Test":"TestEnds","Output":"panic: b\n"}
{"Action":"fail","Package":"github.com/exeunt-io/exeunt/test/e2e/b"}
{"Action":"skip","Package":"github.com/exeunt-io/exeunt/test/e2e/harness"}
{"Action":"pass","Package":"github.com/exeunt-io/exeunt/test/e2e/killed","Test":"TestFirst"}
`

func read(t *testing.T) (Result, string) {
	t.Helper()
	var printed bytes.Buffer
	result, err := Read("v1.34.4", strings.NewReader(stream), &printed)
	if err != nil {
		t.Fatal(err)
	}
	return result, printed.String()
}

func TestReadCountsTopLevelTests(t *testing.T) {
	result, printed := read(t)
	want := Result{Kubernetes: "v1.34.4", Packages: map[string]Package{
		"test/e2e/a": {
			Passed: 1, Failed: []string{"TestBad"}, Skipped: []string{"TestGood/three"}, Equal: 1, Intended: 1,
			Unavailable: map[string][]string{"the feature": {"TestGood"}},
		},
		"test/e2e/b": {Failed: []string{"the package"}},
	}}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Error(diff)
	}
	if want := "bad: 1\nbad: 2\nFAIL a 1s\npanic: b\n"; printed != want {
		t.Errorf("printed %q, want %q", printed, want)
	}
}

func TestFailedAndSkippedTestsAreErrors(t *testing.T) {
	result, _ := read(t)
	err := result.OK()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"test/e2e/a: failed on Kubernetes v1.34.4: TestBad", "test/e2e/a: skipped on Kubernetes v1.34.4: TestGood/three", "test/e2e/b: failed"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
	if err := (Result{Packages: map[string]Package{"a": {Passed: 1}}}).OK(); err != nil {
		t.Error(err)
	}
}

func TestSaveReplacesPackagesThatRanAgain(t *testing.T) {
	directory := t.TempDir()
	for _, run := range []Result{
		{Kubernetes: "v1.34.3", Packages: map[string]Package{"old": {Passed: 9}}},
		{Kubernetes: "v1.34.4", Packages: map[string]Package{"a": {Passed: 1}, "b": {Passed: 2}}},
		{Kubernetes: "v1.36.3", Packages: map[string]Package{"a": {Passed: 3}}},
		{Kubernetes: "v1.34.4", Packages: map[string]Package{"b": {Passed: 4}}},
	} {
		if err := Save(directory, run); err != nil {
			t.Fatal(err)
		}
	}
	results, err := Load(directory)
	want := []Result{
		{Kubernetes: "v1.36.3", Packages: map[string]Package{"a": {Passed: 3}}},
		{Kubernetes: "v1.34.4", Packages: map[string]Package{"a": {Passed: 1}, "b": {Passed: 4}}},
	}
	if diff := cmp.Diff(want, results); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestTableNamesWhatDidNotRunAndWhatFailed(t *testing.T) {
	result, _ := read(t)
	table := Table([]Result{{Kubernetes: "v1.36.3", Packages: map[string]Package{"test/e2e/b": {Passed: 2}}}, result})
	for _, want := range []string{
		"| v1.36.3 | 2 passed, in 1 packages; not run: `test/e2e/a` | not run |  |\n",
		"| v1.34.4 | 1 passed, 2 FAILED, 1 skipped, in 2 packages | 2: 1 equal, 1 with intended differences | the feature (`TestGood`) |\n",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
}

func TestUpdateKeepsTheRestOfThePage(t *testing.T) {
	page := "# Title\n" + beginMarker + "\nold\n" + endMarker + "\nend\n"
	updated, err := Update(page, nil)
	if want := "# Title\n" + beginMarker + "\n\n" + Table(nil) + "\n" + endMarker + "\nend\n"; updated != want || err != nil {
		t.Errorf("%v %s", err, cmp.Diff(want, updated))
	}
	if again, err := Update(updated, nil); again != updated || err != nil {
		t.Errorf("a second update changes the page: %v %s", err, cmp.Diff(updated, again))
	}
	if _, err := Update("# Title\n", nil); err == nil {
		t.Error("a page without markers is updated")
	}
}
