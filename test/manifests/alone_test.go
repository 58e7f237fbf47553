package manifests

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/strvals"
)

// optional matches the documented values that install an optional program.
var optional = regexp.MustCompile("`((?:garbageCollector|nodeTerminator|alive)\\.enabled=true[^`]*)`")

// By default the chart installs pv-controller: a second set of loops beside those of kube-controller-manager.
func TestDocumentedValuesInstallOptionalProgramAlone(t *testing.T) {
	seen := map[string]bool{}
	for _, page := range []string{"deploy/helm/exeunt/README.md", "docs/node-termination.md", "docs/garbage-collector.md",
		teardownPage} {
		for _, said := range optional.FindAllStringSubmatch(guide(t, page), -1) {
			given := values{}
			if err := strvals.ParseInto(said[1], given); err != nil {
				t.Fatalf("%s: %s: %v", page, said[1], err)
			}
			objects := templated(t, given)
			for _, deployment := range deploymentsIn(t, objects) {
				seen[deployment.Name] = true
			}
			if found := deploymentsIn(t, objects); len(found) != 1 || strings.Contains(found[0].Name, "pv-controller") {
				t.Errorf("%s: %s installs %d Deployments", page, said[1], len(found))
			}
			for _, object := range objects {
				if name := object.GetName(); name == "exeunt:pv-controller" || name == "exeunt:provisioner" {
					t.Errorf("%s: %s installs %s", page, said[1], nameOf(object))
				}
			}
		}
	}
	for _, program := range []string{"garbage-collector", "node-terminator", "alive-controller"} {
		if !seen[program] {
			t.Errorf("no page says how the chart installs %s", program)
		}
	}
}

// set-release writes the version into all of them, or the chart pulls images that nobody has pushed.
func TestPagesAndExamplesNameTheReleasedTag(t *testing.T) {
	released := loaded(t).Metadata.AppVersion
	tags := regexp.MustCompile(`exeunt/[a-z-]+:(v[0-9][-0-9a-z.]*)|-exeunt\.([0-9][-0-9a-z.]*)`)
	found := 0
	root := os.DirFS(filepath.Join("..", ".."))
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md", "examples/*/*/*.yaml",
		"deploy/*/*.yaml"} {
		names, err := fs.Glob(root, pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			for _, tag := range tags.FindAllStringSubmatch(guide(t, name), -1) {
				found++
				if got := cmp.Or(tag[1], "v"+tag[2]); got != released {
					t.Errorf("%s names %s, the release is %s", name, tag[0], released)
				}
			}
		}
	}
	if found < 8 {
		t.Errorf("%d tags were found", found)
	}
}

// Applied again, the Lease of the standby would be taken from a pv-controller that leads, for a week.
func TestStandbyLeaseIsNeverAppliedOverLeader(t *testing.T) {
	for _, name := range guides {
		if strings.Contains(guide(t, name), "kubectl apply -f deploy/pv-controller/standby") {
			t.Errorf("%s applies the Lease", name)
		}
	}
}
