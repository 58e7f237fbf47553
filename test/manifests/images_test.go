package manifests

import (
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// programs are our programs, by container name.
var programs = map[string]string{"pv-controller": "pv-controller", "csi-provisioner": "provisioner",
	"csimock": "csimock", "node-terminator": "node-terminator", "alive-controller": "alive-controller"}

// Anyone can register a free domain, and an image from there would run with the rights of
// our programs.
func TestManifestsNameUnresolvableRegistry(t *testing.T) {
	for _, folder := range []string{".", "pv-controller", "node-terminator", "alive", "overlays/csimock"} {
		t.Run(folder, func(t *testing.T) {
			testImages(t, kustomized(t, folder), "registry.invalid/exeunt")
		})
	}
	t.Run("swap", func(t *testing.T) {
		testImages(t, swapWithout(t, driver(t)), "registry.invalid/exeunt")
	})
	for _, file := range []string{"pv-controller/deployment.yaml", "overlays/csimock/deployment.yaml"} {
		t.Run(file, func(t *testing.T) {
			testImages(t, applied(t, []string{"kubectl", "apply", "-f", filepath.Join("deploy", file)}),
				"registry.invalid/exeunt")
		})
	}
}

func TestSwapUsesTheSetImage(t *testing.T) {
	testImages(t, kustomized(t, "overlays/example"), registry)
}

func TestChartUsesTheSetRegistry(t *testing.T) {
	testImages(t, templated(t, values{"provisioner": values{"deployment": values{"enabled": true}},
		"nodeTerminator": values{"enabled": true}, "alive": values{"enabled": true}}), registry)
}

// testImages checks that all our images come from the registry, have the version of the
// chart, and are pulled once.
func testImages(t *testing.T, objects []*unstructured.Unstructured, registry string) {
	t.Helper()
	version := ":" + loaded(t).Metadata.AppVersion
	found := 0
	for _, pod := range podsOf(t, objects) {
		for _, c := range pod.Containers {
			program := programs[c.Name]
			if program == "" {
				continue
			}
			found++
			if want := registry + "/" + program + version; c.Image != want {
				t.Errorf("the image of %s is %s, want %s", c.Name, c.Image, want)
			}
			if c.ImagePullPolicy != v1.PullIfNotPresent && c.ImagePullPolicy != "" { // the default for a version
				t.Errorf("the image of %s is pulled %s", c.Name, c.ImagePullPolicy)
			}
		}
	}
	if found == 0 {
		t.Error("there is no container of ours")
	}
}

func TestChartRequiresARegistry(t *testing.T) {
	const sentence = "set registry to where your images are, such as registry.example.com/exeunt"
	for name, tc := range map[string]struct {
		values  values
		refused string
	}{
		"defaults": {values{}, sentence},
		"driver":   {values{"pvController": values{"enabled": false}, "provisioner": values{"deployment": values{"enabled": true}}}, sentence},
		"driver without image": {values{"registry": registry,
			"provisioner": values{"deployment": values{"enabled": true, "driver": values{"name": "other"}}}}, "set provisioner.deployment.driver.image"},
		"nothing to monitor": {values{"pvController": values{"enabled": false}, "monitoring": values{"podMonitor": true}},
			"monitoring.podMonitor has no program to monitor"},
		"scheme":         {values{"registry": "https://registry.example.com/exeunt"}, "/registry"},
		"trailing slash": {values{"registry": "registry.example.com/exeunt/"}, "/registry"},
		"rights only":    {values{"pvController": values{"enabled": false}}, ""},
		"own repository": {values{"pvController": values{"image": values{"repository": "registry.example.com/other"}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(loaded(t), tc.values)
			if tc.refused == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused)) {
				t.Errorf("answered with %v, want %q", err, tc.refused)
			}
		})
	}
}
