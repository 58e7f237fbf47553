package cluster

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/node/internal/driver"
	"github.com/exeunt-io/exeunt/test/upstream/rbac"
)

// Namespace is the namespace of the driver.
const Namespace = "storage"

// manifests are the kustomizations of the sides, and the driver's manifests.
//
//go:embed manifests
var manifests embed.FS

// releaseComponent sets the version of the images in the driver's manifests.
const releaseComponent = `apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
images:
  - {name: %[1]s/node, newTag: %[2]s}
  - {name: registry.k8s.io/sig-storage/csi-provisioner, newName: %[1]s/csi-provisioner, newTag: %[2]s}
`

// install installs the programs of the side and the driver, as an administrator does, and
// waits until the driver is registered.
func (c *Cluster) install(ctx context.Context) error {
	site := filepath.Join(c.config.Dir, "site")
	if err := c.writeSite(site); err != nil {
		return err
	}
	steps := [][]string{{"create", "namespace", Namespace}}
	if c.config.Side == Chart {
		steps = append(steps, []string{"create", "namespace", deploy.Namespace},
			[]string{"apply", "-f", filepath.Join(site, chartFile)})
	} else {
		steps = append(steps, []string{"apply", "-f", filepath.Join(c.config.Source, "deploy", "namespace.yaml")})
	}
	for _, args := range append(steps, []string{"apply", "-k", filepath.Join(site, string(c.config.Side))}) {
		if err := c.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return c.awaitDriver(ctx)
}

// writeSite writes an administrator's folder: the kustomizations beside a copy of deploy/.
func (c *Cluster) writeSite(site string) error {
	kustomizations, err := fs.Sub(manifests, "manifests")
	if err != nil {
		return err
	}
	for folder, content := range map[string]fs.FS{"": kustomizations,
		"deploy": os.DirFS(filepath.Join(c.config.Source, "deploy")), "rbac": rbac.Manifests} {
		if err := os.CopyFS(filepath.Join(site, folder), content); err != nil {
			return fmt.Errorf("write manifests: %w", err)
		}
	}
	release := filepath.Join(site, "release")
	if err := os.MkdirAll(release, 0o755); err != nil {
		return fmt.Errorf("write manifests: %w", err)
	}
	if err := os.WriteFile(filepath.Join(release, "kustomization.yaml"),
		fmt.Appendf(nil, releaseComponent, registry, c.release), 0o600); err != nil {
		return fmt.Errorf("write manifests: %w", err)
	}
	if c.config.Side != Chart {
		return nil
	}
	text, err := renderChart(c.config.Source)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(site, chartFile), text, 0o600); err != nil {
		return fmt.Errorf("write manifests: %w", err)
	}
	return nil
}

// awaitDriver waits until the driver is registered on the node.
func (c *Cluster) awaitDriver(ctx context.Context) error {
	return c.Await(ctx, "the driver is registered on the node", func(ctx context.Context) error {
		node, err := c.Client.StorageV1().CSINodes().Get(ctx, NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, registered := range node.Spec.Drivers {
			if registered.Name == driver.Name {
				return nil
			}
		}
		return errors.New("kubelet has not registered it yet")
	})
}

// chartFile is the rendered chart in the administrator's folder.
const chartFile = "chart.yaml"

// loadChart returns the chart of the repository.
func loadChart(source string) (*chart.Chart, error) {
	loaded, err := loader.Load(filepath.Join(source, "deploy", "helm", "exeunt"))
	if err != nil {
		return nil, fmt.Errorf("load chart: %w", err)
	}
	return loaded, nil
}

// releaseIn returns the version of the manifests and of their images, which "make
// set-release" writes into the chart.
func releaseIn(source string) (string, error) {
	loaded, err := loadChart(source)
	if err != nil {
		return "", err
	}
	return loaded.Metadata.AppVersion, nil
}

// renderChart renders the chart as "helm template" does, with the registry of the images and
// the service account of the driver, as docs/install.md says.
func renderChart(source string) ([]byte, error) {
	loaded, err := loadChart(source)
	if err != nil {
		return nil, err
	}
	account := map[string]any{"name": "directory", "namespace": Namespace}
	values, err := util.ToRenderValues(loaded, map[string]any{
		"registry": registry, "provisioner": map[string]any{"serviceAccounts": []any{account}},
	}, common.ReleaseOptions{Name: "exeunt", Namespace: deploy.Namespace, Revision: 1, IsInstall: true},
		common.DefaultCapabilities)
	if err != nil {
		return nil, fmt.Errorf("check values of the chart: %w", err)
	}
	files, err := engine.Engine{Strict: true}.Render(loaded, values)
	if err != nil {
		return nil, fmt.Errorf("render chart: %w", err)
	}
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			fmt.Fprintf(&text, "---\n%s\n", files[name])
		}
	}
	return text.Bytes(), nil
}
