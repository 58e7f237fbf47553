package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// driver returns the manifest of the example's driver.
func driver(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deployment, "overlays", "example", "driver.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSwapChangesOnlyTheImage(t *testing.T) {
	given := objectsIn(t, "driver.yaml", []byte(driver(t)))
	swapped := kustomized(t, "overlays/example")
	changed := 0
	for _, before := range given {
		after := find(t, swapped, before.GetKind(), before.GetName())
		old, now := containersOf(before), containersOf(after)
		for i := range old {
			if old[i].name == "csi-provisioner" {
				changed++
				if want := registry + "/provisioner:" + loaded(t).Metadata.AppVersion; now[i].image != want {
					t.Errorf("%s: the image is %s", nameOf(after), now[i].image)
				}
				now[i].image = old[i].image
			}
		}
		if !slices.EqualFunc(old, now, func(a, b container) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
			t.Errorf("%s: the containers were %+v and are %+v", nameOf(after), old, now)
		}
	}
	if changed == 0 {
		t.Error("no container was swapped")
	}
}

// swapWithout returns the swap component on the driver's manifests, without the service
// account of the driver.
func swapWithout(t *testing.T, manifests string) []*unstructured.Unstructured {
	t.Helper()
	return kustomizedSite(t, map[string]string{
		"driver.yaml":        manifests,
		"kustomization.yaml": "resources: [driver.yaml]\ncomponents: [../deploy/overlays/swap]\n",
	})
}

func TestSwapFindsImageOfAMirror(t *testing.T) {
	const upstreams = "registry.k8s.io/sig-storage/csi-provisioner:v6.3.0"
	for name, tc := range map[string]struct {
		image string
		swaps bool
	}{
		"upstream's":                  {upstreams, true},
		"a mirror":                    {"registry.example.com:5000/mirror/csi-provisioner:v6.3.0", true},
		"by its digest":               {"registry.example.com/csi-provisioner@sha256:" + strings.Repeat("0", 64), true},
		"by version and digest":       {"registry.example.com/csi-provisioner:v6.3.0@sha256:" + strings.Repeat("0", 64), true},
		"no registry, no version":     {"csi-provisioner", true},
		"as the repository is called": {"registry.example.com/kubernetes-csi/external-provisioner:v6.3.0-eks-1-36", true},
		"another program":             {"registry.k8s.io/sig-storage/nfs-subdir-external-provisioner:v4.0.2", false},
		"one that ends otherwise":     {"registry.example.com/csi-provisioner-proxy:v1", false},
	} {
		t.Run(name, func(t *testing.T) {
			swapped := find(t, swapWithout(t, strings.ReplaceAll(driver(t), upstreams, tc.image)), "Deployment",
				"hostpath-controller")
			want := tc.image
			if tc.swaps {
				want = "registry.invalid/exeunt/provisioner:" + loaded(t).Metadata.AppVersion
			}
			if got := containersOf(swapped)[1].image; got != want {
				t.Errorf("the image is %s, want %s", got, want)
			}
		})
	}
}

// A swap without the driver's service account must not grant rights to another account.
func TestServerRejectsSwapWithoutServiceAccount(t *testing.T) {
	server := startServer(t)
	swapped := swapWithout(t, driver(t))
	for kind, want := range map[string]string{"ClusterRoleBinding": "subjects[0].name", "Role": "NAMESPACE-OF-THE-DRIVER",
		"RoleBinding": "NAMESPACE-OF-THE-DRIVER"} {
		object := find(t, swapped, kind, "exeunt:provisioner")
		if _, err := server.dryRun(t.Context(), object); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the %s was answered with %v, want a refusal that names %s", kind, err, want)
		}
	}
}

// A second driver's binding of the same name would take the rights from the first.
func TestEachSwappedDriverHasItsOwnBinding(t *testing.T) {
	shared := bindingsOf(kustomized(t, "provisioner"))
	own := 0
	for name := range bindingsOf(kustomized(t, "overlays/example")) {
		own++
		if shared[name] != nil {
			t.Errorf("%s would replace that of deploy/provisioner", name)
		}
	}
	if own == 0 {
		t.Error("the example grants nothing")
	}
}
