package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/exeunt-io/exeunt/deploy"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asKubectl) != "":
		runKubectl()
		return
	case os.Getenv(asHelm) != "":
		runHelm()
		return
	}
	slog.SetLogLoggerLevel(slog.LevelWarn) // the chart has symbolic links on purpose
	m.Run()
}

// deployment is the folder with the manifests.
var deployment = filepath.Join("..", "..", "deploy")

// values are values of a chart.
type values = map[string]any

// kustomized renders a folder below deploy/ as "kubectl apply -k" does.
func kustomized(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).
		Run(filesys.MakeFsOnDisk(), filepath.Join(deployment, folder))
	if err != nil {
		t.Fatalf("kustomize %s: %v", folder, err)
	}
	text, err := rendered.AsYaml()
	if err != nil {
		t.Fatalf("kustomize %s: %v", folder, err)
	}
	return objectsIn(t, folder, text)
}

// kustomizedSite renders an administrator's folder with the files, beside deploy/.
func kustomizedSite(t *testing.T, files map[string]string) []*unstructured.Unstructured {
	t.Helper()
	memory := filesys.MakeFsInMemory()
	write := func(name string, text []byte) {
		if err := memory.WriteFile(name, text); err != nil {
			t.Fatalf("write %s: %v", name, err)
		}
	}
	tree := os.DirFS(deployment)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".yaml" {
			return err
		}
		text, err := fs.ReadFile(tree, name)
		write("/deploy/"+name, text)
		return err
	})
	if err != nil {
		t.Fatalf("read manifests: %v", err)
	}
	for name, text := range files {
		write("/site/"+name, []byte(text))
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, "/site")
	if err != nil {
		t.Fatalf("kustomize: %v", err)
	}
	text, err := rendered.AsYaml()
	if err != nil {
		t.Fatalf("kustomize: %v", err)
	}
	return objectsIn(t, "site", text)
}

// loaded returns the chart of the repository.
func loaded(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(filepath.Join(deployment, "helm", "exeunt"))
	if err != nil {
		t.Fatalf("load chart: %v", err)
	}
	return c
}

// registry of the images in tests.
const registry = "registry.example.com/exeunt"

// templated renders the chart with the values and with a registry.
func templated(t *testing.T, given values) []*unstructured.Unstructured {
	t.Helper()
	return installed(t, withRegistry(given))
}

// withRegistry adds the registry, the only value without default.
func withRegistry(given values) values {
	complete := values{"registry": registry}
	maps.Copy(complete, given)
	return complete
}

// installed renders the chart as "helm install exeunt" does, with these values only.
func installed(t *testing.T, given values) []*unstructured.Unstructured {
	t.Helper()
	files, err := render(loaded(t), given)
	if err != nil {
		t.Fatalf("template: %v", err)
	}
	var objects []*unstructured.Unstructured
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(name) == ".yaml" {
			objects = append(objects, objectsIn(t, name, []byte(files[name]))...)
		}
	}
	return objects
}

// older are the abilities that helm knows by default, for a version without MutatingAdmissionPolicy.
var older = abilities("v1.35.4")

// abilities returns what helm knows without an API server, for a version of Kubernetes.
func abilities(version string, served ...string) *common.Capabilities {
	able := common.DefaultCapabilities.Copy()
	able.KubeVersion = common.KubeVersion{Version: version}
	able.APIVersions = slices.Concat(able.APIVersions, served)
	return able
}

// present returns the abilities of the newest API server.
func present() *common.Capabilities {
	return abilities("v1.36.3", "apps/v1/Deployment", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")
}

// render checks the values against the schema, and fills the templates for the newest API server.
func render(c *chart.Chart, given values) (map[string]string, error) {
	return renderFor(c, given, present())
}

// renderFor does the same for an API server with these abilities.
func renderFor(c *chart.Chart, given values, able *common.Capabilities) (map[string]string, error) {
	release := common.ReleaseOptions{Name: "exeunt", Namespace: deploy.Namespace, Revision: 1, IsInstall: true}
	checked, err := util.ToRenderValues(c, given, release, able)
	if err != nil {
		return nil, err
	}
	return engine.Engine{Strict: true}.Render(c, checked)
}

// objectsIn reads a stream of YAML documents.
func objectsIn(t *testing.T, source string, text []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects
		case err != nil:
			t.Fatalf("read %s: %v in:\n%s", source, err, text)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

// nameOf returns kind, namespace and name.
func nameOf(object *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
}

// find returns the object with the kind and name.
func find(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

// The chart and the manifests run garbage-collector alike.
func TestChartRunsCollectorAsManifests(t *testing.T) {
	objects, inChart := kustomized(t, "garbage-collector"), templated(t, collectorOn)
	want, got := podsOf(t, []*unstructured.Unstructured{find(t, objects, "Deployment", "garbage-collector")})[0],
		podsOf(t, []*unstructured.Unstructured{find(t, inChart, "Deployment", "garbage-collector")})[0]
	want.Affinity, got.Affinity = nil, nil // it selects pods of the release
	want.Containers[0].Image = got.Containers[0].Image
	want.Containers[0].Args = append(want.Containers[0].Args, "--v=2")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pods of the manifests (-) and of the chart (+):\n%s", diff)
	}
	unavailable := func(in []*unstructured.Unstructured) any {
		value, _, _ := unstructured.NestedFieldNoCopy(find(t, in, "PodDisruptionBudget", "garbage-collector").Object, "spec",
			"maxUnavailable")
		return value
	}
	if diff := cmp.Diff(unavailable(objects), unavailable(inChart)); diff != "" {
		t.Errorf("disruption budgets:\n%s", diff)
	}
}

func TestChartPassesFlagsToCollector(t *testing.T) {
	objects := templated(t, values{"garbageCollector": values{"enabled": true, "dryRun": true, "securePort": 20271,
		"extraArgs": []any{"--unreadable-kind-orphan-timeout=1h"}}})
	container := podsOf(t, []*unstructured.Unstructured{find(t, objects, "Deployment",
		"garbage-collector")})[0].Containers[0]
	want := []string{"--leader-elect=true", "--secure-port=20271", "--logging-format=json", "--v=2", "--dry-run",
		"--unreadable-kind-orphan-timeout=1h"}
	if !slices.Equal(container.Args, want) || container.Ports[0].ContainerPort != 20271 {
		t.Errorf("arguments %v, port %d", container.Args, container.Ports[0].ContainerPort)
	}
}

func TestNotesSayHowToSwitchCollectors(t *testing.T) {
	notes := notesOf(t, collectorOn)
	if !strings.Contains(notes, "-garbage-collector-controller") || strings.Contains(notes, "It deletes nothing") {
		t.Errorf("notes:\n%s", notes)
	}
	if notes := notesOf(t, values{"garbageCollector": values{"enabled": true, "dryRun": true}}); !strings.Contains(notes,
		"It deletes nothing") {
		t.Errorf("notes of a dry run:\n%s", notes)
	}
	if notes := notesOf(t, values{}); strings.Contains(notes, "garbage-collector") {
		t.Errorf("notes without the collector:\n%s", notes)
	}
}
