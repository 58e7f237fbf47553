package manifests

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/strvals"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// guides are the documents with commands for administrators.
var guides = []string{"README.md", filepath.Join("docs", "install.md"), filepath.Join("docs", "flags.md"),
	platformsPage, filepath.Join("docs", "operate.md"), filepath.Join("docs", "node-termination.md"), teardownPage}

var (
	command     = regexp.MustCompile("(?:kubectl (?:apply|delete) -[fk] |kubectl create -f deploy/|helm install )[^`\n]*")
	mentioned   = regexp.MustCompile(`[^./\w](deploy/[\w./-]*\w)`)
	yamlBlock   = regexp.MustCompile("(?s)\n( *)```yaml\n(.*?)\n *```\n")
	placeholder = strings.NewReplacer("ACCOUNT", "hostpath-controller", "NAMESPACE", "storage", "'", "")
)

// guide returns the text of a document.
func guide(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documented returns the objects that the documented commands apply, by command.
func documented(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	found := map[string][]*unstructured.Unstructured{}
	for _, name := range guides {
		for _, line := range command.FindAllString(guide(t, name), -1) {
			words := strings.Fields(placeholder.Replace(line))
			if words[0] == "helm" {
				found[line] = installed(t, asHelmDoes(t, words))
				continue
			}
			found[line] = applied(t, words)
		}
	}
	return found
}

// applied returns the objects of "kubectl apply" or "kubectl delete".
func applied(t *testing.T, words []string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for i := 2; i < len(words)-1; i += 2 {
		path := strings.TrimPrefix(words[i+1], "deploy/")
		switch {
		case words[i] == "-k" && path == "site":
			objects = append(objects, kustomizedSite(t, map[string]string{"kustomization.yaml": kustomizationsOf(t)[0]})...)
		case words[i] == "-k":
			objects = append(objects, kustomized(t, path)...)
		case words[i] == "-f":
			text, err := os.ReadFile(filepath.Join(deployment, path))
			if err != nil {
				t.Errorf("%v: %v", words, err)
			}
			objects = append(objects, objectsIn(t, path, text)...)
		default:
			t.Errorf("%v: what is %s?", words, words[i])
		}
	}
	return objects
}

// asHelmDoes reads the values of "helm install NAME CHART".
func asHelmDoes(t *testing.T, words []string) values {
	t.Helper()
	given := values{}
	if words[3] != "deploy/helm/exeunt" {
		t.Errorf("%v installs another chart", words)
	}
	for i := 4; i < len(words); i++ {
		switch words[i] {
		case "--create-namespace":
		case "--namespace":
			i++
		case "--set":
			i++
			if err := strvals.ParseInto(words[i], given); err != nil {
				t.Errorf("%v: %v", words, err)
			}
		default:
			t.Errorf("%v: what is %s?", words, words[i])
		}
	}
	return given
}

// kustomizationsOf returns the kustomizations in the documents.
func kustomizationsOf(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, name := range guides {
		for _, block := range yamlBlock.FindAllStringSubmatch(guide(t, name), -1) {
			if text := strings.TrimPrefix(strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n"), "\n"); strings.Contains(text,
				"kind: Kustomization") {
				found = append(found, text)
			}
		}
	}
	return found
}

func TestDocumentsDescribeInstallationOfBothPrograms(t *testing.T) {
	said := strings.Join(slices.Sorted(maps.Keys(documented(t))), "\n")
	for _, want := range []string{"kubectl apply -k site", "kubectl create -f deploy/pv-controller/standby/lease.yaml",
		"helm install exeunt deploy/helm/exeunt", "kubectl apply -f deploy/namespace.yaml"} {
		if !strings.Contains(said, want) {
			t.Errorf("no document says %q; they say:\n%s", want, said)
		}
	}
}

func TestDocumentedDeployFilesExist(t *testing.T) {
	for _, name := range guides {
		for _, path := range mentioned.FindAllStringSubmatch(guide(t, name), -1) {
			if _, err := os.Stat(filepath.Join("..", "..", path[1])); err != nil {
				t.Errorf("%s names %s: %v", name, path[1], err)
			}
		}
	}
}

// The rights granted before the Deployment is applied let its pods start and serve.
func TestFirstStepGrantsAllRequiredRights(t *testing.T) {
	for name, tc := range map[string]struct {
		guide   string
		folders []string
	}{
		"pv-controller": {filepath.Join("docs", "install.md"), []string{"pv-controller"}},
	} {
		t.Run(name, func(t *testing.T) {
			first := strings.Fields(command.FindString(guide(t, tc.guide)))
			granted := applied(t, first)
			var whole []*unstructured.Unstructured
			for _, folder := range tc.folders {
				whole = append(whole, kustomized(t, folder)...)
			}
			if diff := cmp.Diff(rulesOf(t, whole), rulesOf(t, granted)); diff != "" {
				t.Errorf("rules of the kustomization (-) and of %v (+):\n%s", first, diff)
			}
			if diff := cmp.Diff(bindingsOf(whole), bindingsOf(granted)); diff != "" {
				t.Errorf("bindings of the kustomization (-) and of %v (+):\n%s", first, diff)
			}
		})
	}
}

// If the chart of a driver runs the provisioner, the command that grants its rights must
// not start a second set of loops.
func TestDriverRightsCommandOnlyPrints(t *testing.T) {
	found := false
	for line, objects := range documented(t) {
		if strings.Contains(line, "serviceAccounts") {
			found = true
			for _, deployment := range deploymentsIn(t, objects) {
				t.Errorf("%s\nruns %s", line, deployment.Name)
			}
			find(t, objects, "ClusterRoleBinding", "exeunt:provisioner")
		}
	}
	if !found {
		t.Error("no document says how to grant the rights alone")
	}
}

func TestDocumentedKustomizationsAreAccepted(t *testing.T) {
	server := startServer(t)
	images := map[string]bool{}
	for _, text := range kustomizationsOf(t) {
		objects := kustomizedSite(t, map[string]string{"kustomization.yaml": text})
		for _, object := range objects {
			server.prepareNamespace(t, object)
			if _, err := server.dryRun(t.Context(), object); err != nil { // host paths cause a warning
				t.Errorf("%s: %v", nameOf(object), err)
			}
		}
		for _, pod := range podsOf(t, objects) {
			images[pod.Containers[0].Image] = true
		}
		testFlags(t, objects)
	}
	if want := map[string]bool{"registry.example.com/exeunt/pv-controller:" + loaded(t).
		Metadata.AppVersion: true}; !cmp.Equal(want, images) {
		t.Errorf("the images are %v, want %v", images, want)
	}
}

// docs/flags.md lists the rights beyond those of upstream's manifest.
func TestRightsBeyondUpstreamAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "upstream", "rbac", "csi-provisioner.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	upstreams := verbsOf(rulesOf(t, objectsIn(t, "upstream", text)))
	var beyond []string
	for right := range verbsOf(rulesOf(t, kustomized(t, "provisioner"))) {
		if !upstreams[right] {
			beyond = append(beyond, right)
		}
	}
	slices.Sort(beyond)
	want := []string{
		"create selfsubjectaccessreviews", "get volumeattributesclasses", "list volumeattributesclasses",
		"patch persistentvolumeclaims", "patch volumesnapshots", "watch volumeattributesclasses",
	}
	if diff := cmp.Diff(want, beyond); diff != "" {
		t.Errorf("rights beyond upstream's (-want +got):\n%s", diff)
	}
	for _, right := range beyond {
		if _, resource, _ := strings.Cut(right, " "); !strings.Contains(guide(t, guides[2]), "`"+resource+"`") {
			t.Errorf("docs/flags.md does not name %s", resource)
		}
	}
}

// verbsOf returns all rights of the roles, as "verb resource".
func verbsOf(rules map[string][]rbacv1.PolicyRule) map[string]bool {
	rights := map[string]bool{}
	for _, granted := range rules {
		for _, rule := range granted {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					rights[verb+" "+resource] = true
				}
			}
		}
	}
	return rights
}

// exclusions turn off the loops that pv-controller replaces.
const exclusions = "-persistentvolume-binder-controller,-persistentvolume-protection-controller,-persistentvolumeclaim-protection-controller"

// appends matches what stands before the exclusions in a line that keeps the value of the
// distribution. Talos appends by itself.
var appends = regexp.MustCompile(`^ *$|\*,bootstrapsigner,tokencleaner,$|"controllers\+=$|^ *controllers: "$`)

// Two sets of loops conflict. A --controllers value that replaces the value of the
// distribution turns other controllers on or off; then nodes cannot join.
func TestInstallationsAppendToControllersFlag(t *testing.T) {
	notes := func(given values) string { return notesOf(t, given) }
	for name, text := range map[string]string{"README.md": guide(t, guides[0]), "docs/install.md": guide(t, guides[1]),
		"docs/platforms.md": guide(t, platformsPage), "chart": notes(values{})} {
		lines := slices.DeleteFunc(strings.Split(text, "\n"),
			func(line string) bool { return !strings.Contains(line, exclusions) })
		if len(lines) == 0 {
			t.Errorf("%s does not say %s", name, exclusions)
		}
		for _, line := range lines {
			if before, _, _ := strings.Cut(line, exclusions); !appends.MatchString(before) {
				t.Errorf("%s replaces the value: %s", name, line)
			}
		}
		if !regexp.MustCompile(`(?i)\bappend\b`).MatchString(text) {
			t.Errorf("%s does not say to append", name)
		}
		for _, distribution := range []string{"kubeadm", "k3s", "RKE2"} {
			if !strings.Contains(text, distribution) {
				t.Errorf("%s does not name %s", name, distribution)
			}
		}
	}
	if text := notes(values{"pvController": values{"enabled": false}}); strings.Contains(text, exclusions) {
		t.Errorf("without pv-controller the chart says: %s", text)
	}
}
