// Package examples embeds the manifests of the examples of graceful deletion, for the sandbox and tests.
package examples

import "embed"

// Manifests are the kinds and rights of virtual-machine and database.
//
//go:embed virtual-machine/deploy/*.yaml database/deploy/*.yaml
var Manifests embed.FS

// Buckets are the kind and rights of bucket-operator.
//
//go:embed bucket-operator/deploy/*.yaml
var Buckets embed.FS
