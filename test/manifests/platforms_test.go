package manifests

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/strvals"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// platformsPage says what each platform allows, and which file to change.
var platformsPage = filepath.Join("docs", "platforms.md")

var (
	sectionHead = regexp.MustCompile(`(?m)^## (.+)$`)
	platformRow = regexp.MustCompile(`(?m)^\| \[([^\]]+)\]\(#([^)]+)\) \|(.*)\|$`)
	loopName    = regexp.MustCompile(`persistentvolume(?:claim)?-[a-z]+-controller`)
	excluded    = regexp.MustCompile(`-persistentvolume(?:claim)?-[a-z]+-controller`)
	chartKey    = regexp.MustCompile("`([A-Za-z.]+\\.(?:registry|repository|tag))`")
)

// sectionsOf returns the sections of a document by their anchors.
func sectionsOf(text string) map[string]string {
	found := map[string]string{}
	heads := sectionHead.FindAllStringSubmatchIndex(text, -1)
	for i, head := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		for anchor := range anchors(text[head[0]:head[1]]) {
			found[anchor] = text[head[0]:end]
		}
	}
	return found
}

func TestEachPlatformHasACompleteSection(t *testing.T) {
	text := guide(t, platformsPage)
	sections := sectionsOf(text)
	var named []string
	for _, row := range platformRow.FindAllStringSubmatch(text, -1) {
		named = append(named, row[1])
		if cells := strings.Split(row[3], "|"); len(cells) != 3 {
			t.Errorf("the row of %s has %d answers, want 3", row[1], len(cells))
		}
		for _, step := range []string{"**Change**", "**Done when**", "**After an upgrade**", "**Back**"} {
			if !strings.Contains(sections[row[2]], step) {
				t.Errorf("the section of %s does not say %s", row[1], step)
			}
		}
	}
	want := []string{"kubeadm", "k3s", "RKE2", "Talos", "OpenShift", "EKS", "GKE", "AKS"}
	if diff := cmp.Diff(want, named); diff != "" {
		t.Errorf("platforms in the table (-want +got):\n%s", diff)
	}
}

// The real kube-controller-manager ignores no wrong name: it refuses to start.
func TestDocumentsNameEveryLoopThatKubeControllerManagerHas(t *testing.T) {
	dir := binaries().Dir
	help, err := exec.CommandContext(t.Context(), filepath.Join(dir, "upstream", "kube-controller-manager"), "--help").
		Output()
	if err != nil {
		t.Fatal(err)
	}
	loops := strings.Split(strings.ReplaceAll(exclusions, "-persistent", "persistent"), ",")
	for _, loop := range loops {
		if !strings.Contains(string(help), loop) {
			t.Errorf("kube-controller-manager has no loop %s", loop)
		}
	}
	for _, name := range documents(t) {
		for _, line := range strings.Split(guide(t, name), "\n") {
			if excluded.MatchString(line) && !strings.Contains(line, exclusions) {
				t.Errorf("%s excludes some of the loops only: %s", name, line)
			}
		}
	}
	for _, name := range loopName.FindAllString(guide(t, platformsPage), -1) {
		if !slices.Contains(loops, name) {
			t.Errorf("the page names the loop %s", name)
		}
	}
}

// The types of the files that no API server reads, with the fields that the page uses.
type (
	extraArgs[T any] struct {
		ControllerManager struct {
			ExtraArgs T `json:"extraArgs"`
		} `json:"controllerManager"`
	}
	argument    struct{ Name, Value string }
	talosConfig struct {
		Cluster extraArgs[map[string]string] `json:"cluster"`
	}
	rancherConfig struct {
		Arguments []string `json:"kube-controller-manager-arg"`
	}
	rancherCluster struct {
		Spec struct {
			RKEConfig struct {
				MachineGlobalConfig rancherConfig `json:"machineGlobalConfig"`
			} `json:"rkeConfig"`
		} `json:"spec"`
	}
	subject          struct{ Kind, Name, Namespace string }
	kyvernoExclusion struct {
		Exclude struct {
			Any []struct {
				Subjects []subject `json:"subjects"`
			} `json:"any"`
		} `json:"exclude"`
	}
)

// platformFiles returns what the page writes into each file of a platform.
func platformFiles() map[string]any {
	const kubeadms = "*,bootstrapsigner,tokencleaner," + exclusions
	var list extraArgs[[]argument]
	list.ControllerManager.ExtraArgs = []argument{{"controllers", kubeadms}}
	var object extraArgs[map[string]string]
	object.ControllerManager.ExtraArgs = map[string]string{"controllers": kubeadms}
	var talos talosConfig
	talos.Cluster.ControllerManager.ExtraArgs = map[string]string{"controllers": exclusions}
	config := rancherConfig{[]string{"controllers+=" + exclusions}}
	var cluster rancherCluster
	cluster.Spec.RKEConfig.MachineGlobalConfig = config
	var kyverno kyvernoExclusion
	kyverno.Exclude.Any = append(kyverno.Exclude.Any, struct {
		Subjects []subject `json:"subjects"`
	}{[]subject{{"ServiceAccount", "pv-controller", "exeunt-system"}}})
	// A patch of a static pod: kubeadm merges it by the name of the container.
	type container struct{ Name, Image string }
	var patch struct {
		Spec struct{ Containers []container }
	}
	patch.Spec.Containers = []container{{"kube-apiserver", "registry.example.com/kube-apiserver:v1.36.3-exeunt.0.1.0"}}
	return map[string]any{
		"patch of kubeadm": patch, "kubeadm v1beta4": list, "kubeadm v1beta3": object, "Talos": talos,
		"k3s and RKE2": config, "Rancher": cluster, "Kyverno": kyverno,
	}
}

// blocksOf returns the YAML blocks of the page of platforms.
func blocksOf(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, block := range yamlBlock.FindAllStringSubmatch(guide(t, platformsPage), -1) {
		found = append(found, strings.TrimPrefix(strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n"), "\n"))
	}
	return found
}

// objectsOfPage returns the API objects in the YAML blocks.
func objectsOfPage(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, block := range blocksOf(t) {
		if strings.Contains(block, "apiVersion:") {
			found = append(found, objectsIn(t, platformsPage, []byte(block))...)
		}
	}
	return found
}

// kubeadm, for example, writes the static pods again from its configuration in every upgrade.
func TestPlatformFilesHaveTheFieldsOfTheirPlatform(t *testing.T) {
	missing := platformFiles()
	for _, block := range blocksOf(t) {
		if strings.Contains(block, "apiVersion:") {
			continue // TestServerAcceptsObjectsOfPlatformsPage
		}
		fits := false
		for name, want := range missing {
			got := reflect.New(reflect.TypeOf(want))
			if yaml.UnmarshalStrict([]byte(block), got.Interface()) == nil && cmp.Equal(want, got.Elem().Interface()) {
				fits = true
				delete(missing, name)
			}
		}
		if !fits {
			t.Errorf("no platform has such a file, or not with these values:\n%s", block)
		}
	}
	for name := range missing {
		t.Errorf("the page has no file for %s", name)
	}
}

// A chart with registry, repository and tag joins the three; others join the last two.
func TestDriverChartsGetTheImageOfProvisioner(t *testing.T) {
	charts := 0
	for _, line := range strings.Split(guide(t, platformsPage), "\n") {
		given := values{}
		keys := chartKey.FindAllStringSubmatch(line, -1)
		if !strings.HasPrefix(line, "| ") || len(keys) == 0 {
			continue
		}
		charts++
		var parts []string
		for _, key := range keys {
			if err := strvals.ParseInto(key[1]+"=x", given); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			parts = append(parts, key[1][strings.LastIndex(key[1], ".")+1:])
		}
		if parts[len(parts)-1] != "tag" || !slices.Contains(parts, "repository") {
			t.Errorf("the keys are %v: %s", parts, line)
		}
	}
	if charts < 8 {
		t.Errorf("%d charts are listed", charts)
	}
}

// commandLines returns the lines of the code blocks without a language.
func commandLines(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, block := range codeBlock.FindAllString(guide(t, platformsPage), -1) {
		if text, is := strings.CutPrefix(strings.Trim(block, "`"), "\n"); is {
			found = append(found, strings.Split(strings.TrimSpace(text), "\n")...)
		}
	}
	return found
}

// Commands of a provider cannot run here; those of kubectl do (TestDocumentedKubectlFlagsExist).
func TestPlatformCommandsAreKnown(t *testing.T) {
	const flag = "-" // the line of kubeadm's manifest
	known := []string{"kubectl", "journalctl", "talosctl", "aws", "gcloud", "az", "grep", flag}
	lines := commandLines(t)
	for _, line := range lines {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); !slices.Contains(known, word) {
			t.Errorf("unknown command: %s", line)
		}
	}
	if len(lines) < 20 {
		t.Errorf("the page has %d commands", len(lines))
	}
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	codeBlock    = regexp.MustCompile("(?s)```.*?```")
)

// documents returns the paths of all Markdown files, from the root of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin" || entry.Name() == ".cache") {
			return fs.SkipDir
		}
		if filepath.Ext(path) == ".md" {
			relative, err := filepath.Rel(root, path)
			found = append(found, relative)
			return err
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("%d documents found, error %v", len(found), err)
	}
	return found
}

// anchors returns the link anchors of the headings of a document.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		plain := notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(match[1])), "")
		found[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return found
}

func TestLinksOfTheDocumentsLeadSomewhere(t *testing.T) {
	for _, name := range documents(t) {
		for _, match := range markdownLink.FindAllStringSubmatch(guide(t, name), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(match[1], "#")
			target := name
			if path != "" {
				target = filepath.Join(filepath.Dir(name), path)
			}
			if _, err := os.Stat(filepath.Join("..", "..", target)); err != nil {
				t.Errorf("%s links to %s: %v", name, match[1], err)
				continue
			}
			if anchor != "" && !anchors(guide(t, target))[anchor] {
				t.Errorf("%s links to %s, which has no heading of that name", name, match[1])
			}
		}
	}
}
