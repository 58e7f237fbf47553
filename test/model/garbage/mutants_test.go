package garbage

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/exeunt-io/exeunt/test/model/explore"
	"github.com/exeunt-io/exeunt/test/model/mutant"
)

// defects are defects by name, each with a cluster in which it breaks a rule.
var defects = []struct{ name, cluster, rule string }{
	{"no-resource-version-in-delete", "foreground, the dependent gets another owner", DeletedWithOwner},
	{"live-by-the-watch", "two owners, the watch of one is late", WaitingReferenceRemoved},
	{"orphaning-frees-others", "two owners, one orphans and one is in the foreground", WaitingReferenceRemoved},
	{"verdict-without-age", "foreground, then orphan, a second passes", DeletedWithOwner},
	{"absence-from-list", "the watch shows the dependent before its owner", DeletedWithOwner},
	{"uid-without-coordinates", "wrong coordinates", GarbageLeft},
	{"absence-without-coordinates", "wrong coordinates", DeletedWithOwner},
	{"barrier-short-of-a-kind", "foreground, a secret is created", ReleasedEarly},
	{"barrier-begun-before-deletion", "foreground, the second owner during the barrier of the first", ReleasedEarly},
	{"versions-across-counters", "two objects of a kind, counters of different height", ReleasedEarly},
	{"no-barrier-for-orphan", "orphan, a dependent is created", OrphanedEarly},
	{"no-barrier-for-foreground", "foreground, the second owner during the barrier of the first", ReleasedEarly},
	{"childless-without-barrier", "foreground, a dependent of a dependent is created", JudgedChildless},
	{"component-with-blocker-outside", "a cycle with a blocker outside", ReleasedEarly},
	{"component-unread", "a cycle of two", ReleasedEarly},
	{"list-overtaken-by-deletion", "a late list, the dependent ends", OwnerStuck},
	{"absence-from-write", "a webhook denies a write", DeletedWithOwner},
	{"absence-from-memory", "raised versions, the owner is back", DeletedWithOwner},
	{"restored-state-ignored", "raised versions, the dependent has its former owner", OrphanedEarly},
	{"pass-without-age", "raised versions, the backup is younger than the deletion", OrphanedEarly},
	{"barrier-without-checks", "the API server goes away", ReleasedEarly},
	{"path-not-found-is-absence", "the watch shows the dependent before its owner", DeletedWithOwner},
}

// TestDefectsAreFound puts each defect back, and expects that the model finds it. Without mutants in
// its binary it compiles a binary with them, and runs that.
func TestDefectsAreFound(t *testing.T) {
	if len(mutant.All()) == 0 {
		runWithMutants(t)
		return
	}
	for _, d := range defects {
		t.Run(d.name, func(t *testing.T) {
			mutant.Select(idOf(t, d.name))
			defer mutant.Select(0)
			result := exploreFor(t, clusterNamed(t, d.cluster), explore.Limits{Violations: 1})
			if len(result.Violations) == 0 || result.Violations[0].Rule != d.rule {
				t.Fatalf("%d states, want a broken rule %s, got %v", result.States, d.rule, result.Violations)
			}
			t.Logf(
				"%s: %s is broken after %d states, by a story of %d steps", d.name, d.rule, result.States,
				len(result.Violations[0].Story),
			)
		})
	}
	if named := countNamed(); named != len(defects) {
		t.Errorf("%d of %d defects are expected to be found", len(defects), named)
	}
}

func countNamed() (count int) {
	for _, m := range mutant.All() {
		if m.Name != "" {
			count++
		}
	}
	return count
}

func idOf(t *testing.T, name string) int {
	t.Helper()
	for _, m := range mutant.All() {
		if m.Name == name {
			return m.ID
		}
	}
	t.Fatalf("there is no defect %s", name)
	return 0
}

func clusterNamed(t *testing.T, name string) *Config {
	t.Helper()
	for _, c := range Quick() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no cluster %q", name)
	return nil
}

// runWithMutants compiles the mutants of garbage collection into this test, and runs it.
func runWithMutants(t *testing.T) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	for _, args := range [][]string{
		{"run", "./test/model/mutant/generate", "-set", "garbage", "-out", out},
		{
			"test", "-count=1", "-vet=off", "-v", "-overlay", filepath.Join(out, "overlay.json"), "-run",
			"^TestDefectsAreFound$", "./test/model/garbage",
		},
	} {
		command := exec.Command("go", args...)
		command.Dir = root
		command.Env = append(os.Environ(), "EXEUNT_MUTANT=0")
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", fmt.Sprint(args), err, output)
		}
		t.Logf("%s", output)
	}
}
