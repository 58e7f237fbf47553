// Package rbac embeds the rights of upstream's programs.
package rbac

import "embed"

// Manifests are the YAML files of this folder.
//
//go:embed *.yaml
var Manifests embed.FS
