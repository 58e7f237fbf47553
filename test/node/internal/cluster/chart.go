package cluster

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/exeunt-io/exeunt/deploy"
)

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
	}, common.ReleaseOptions{Name: "exeunt", Namespace: deploy.Namespace, Revision: 1, IsInstall: true}, common.DefaultCapabilities)
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
