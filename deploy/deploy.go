// Package deploy carries the manifests of both programs, so that tests, the demo
// and the operator's tool apply exactly what administrators do.
package deploy

import "embed"

// Manifests are the YAML files, by their path below this folder.
//
//go:embed namespace.yaml pv-controller/*rbac.yaml pv-controller/deployment.yaml provisioner/rbac.yaml
var Manifests embed.FS

// The service accounts of the two programs and their namespace.
const (
	Namespace    = "exeunt-system"
	PVController = "pv-controller"
	Provisioner  = "provisioner"
)
