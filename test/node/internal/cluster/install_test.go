package cluster

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// source is the root of the repository.
const source = "../../../.."

// installed returns what the side installs.
func installed(t *testing.T, side Side) string {
	t.Helper()
	release, err := releaseIn(source)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{config: Config{Source: source, Side: side}, release: release}
	site := t.TempDir()
	if err := c.writeSite(site); err != nil {
		t.Fatal(err)
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).
		Run(filesys.MakeFsOnDisk(), filepath.Join(site, string(side)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := rendered.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	if side != Chart {
		return string(text)
	}
	chart, err := os.ReadFile(filepath.Join(site, chartFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "---\n" + string(chart)
}

func TestImagesHaveTheVersionOfTheChart(t *testing.T) {
	image := regexp.MustCompile(`image: "?(\S+?)"?\n`)
	for side, want := range map[Side]string{
		Ours:     "node provisioner pv-controller",
		Chart:    "node provisioner pv-controller",
		Upstream: "csi-provisioner node",
	} {
		t.Run(string(side), func(t *testing.T) {
			release, err := releaseIn(source)
			if err != nil || !strings.HasPrefix(release, "v") {
				t.Fatalf("the chart has the version %q, %v", release, err)
			}
			var images []string
			for _, found := range image.FindAllStringSubmatch(installed(t, side), -1) {
				name, ours := strings.CutPrefix(found[1], registry+"/")
				name, tagged := strings.CutSuffix(name, ":"+release)
				if !ours || !tagged {
					t.Errorf("the image %s is not one of %s with the tag %s", found[1], registry, release)
				}
				images = append(images, name)
			}
			slices.Sort(images)
			if got := strings.Join(slices.Compact(images), " "); got != want {
				t.Errorf("the images are %s, want %s", got, want)
			}
		})
	}
}

func TestUnknownSideIsRefused(t *testing.T) {
	_, err := Start(t.Context(), Config{Source: source, Side: "theirs"})
	if err == nil || err.Error() != `unknown side "theirs", want ours, chart or upstream` {
		t.Errorf("Start() = %v, want a sentence that names the sides", err)
	}
}
