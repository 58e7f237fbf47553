// Package deploy embeds the manifests of both programs, so that tests, the demo and
// "sandbox" apply the same files as administrators.
package deploy

import "embed"

// Manifests are the YAML files, by their path below this folder.
//
//go:embed namespace.yaml pv-controller/*rbac.yaml pv-controller/deployment.yaml pv-controller/disruption.yaml provisioner/rbac.yaml
var Manifests embed.FS

// Recycler are the optional rights to create recycler pods.
//
//go:embed pv-controller/recycler/rbac.yaml
var Recycler embed.FS

// Standby is the Lease that keeps pv-controller on standby until it is deleted.
//
//go:embed pv-controller/standby/lease.yaml
var Standby embed.FS

// Admission are the YAML files of the optional admission policy.
//
//go:embed admission/policy.yaml admission/drivers.yaml
var Admission embed.FS

// GarbageCollector are the manifests of the garbage collector, which is optional.
//
//go:embed garbage-collector/rbac.yaml garbage-collector/serving-rbac.yaml garbage-collector/deployment.yaml garbage-collector/priority.yaml
var GarbageCollector embed.FS

// GarbageCollectorAccount is the service account of the garbage collector.
const GarbageCollectorAccount = "garbage-collector"

// NodeTerminator are the rights of node-terminator, which is optional, and the NodeClaims. The Deployment is not among
// them: where all loops run, it would put pods on the nodes of a test.
//
//go:embed node-terminator/rbac.yaml node-terminator/serving-rbac.yaml node-terminator/priority.yaml node-terminator/nodeclaim/crd.yaml
var NodeTerminator embed.FS

// NodeTerminatorAccount is the service account of node-terminator.
const NodeTerminatorAccount = "node-terminator"

// Viewer are the optional rights to read what "exeunt why" reads.
//
//go:embed viewer/rbac.yaml
var Viewer embed.FS

// Alive are the kind Alive, its guards and the rights of participants, which "exeunt teardown --confirm" applies where they
// are missing.
//
//go:embed alive/namespace.yaml alive/crd.yaml alive/policy.yaml alive/participant.yaml
var Alive embed.FS

// AliveRights are the rights of alive-controller, and those of the runner of a teardown, which nobody has.
//
//go:embed alive/rbac.yaml alive/serving-rbac.yaml
var AliveRights embed.FS

// AliveArmed gives alive-controller the rights of the runner.
//
//go:embed alive/armed/binding.yaml
var AliveArmed embed.FS

// Freeze is the policy that the runner of a teardown writes, and its binding. The runner puts the namespaces of unopened
// waves into its first variable.
//
//go:embed alive/freeze.yaml
var Freeze []byte

// AliveController is the service account of alive-controller.
const AliveController = "alive-controller"

// The policies, and their bindings, that guard Alive and its CRD; and the binding of the right to tear down.
const (
	AlivePolicy      = "exeunt-alive"
	DefinitionPolicy = "exeunt-alive-definition"
	ArmedBinding     = "exeunt-teardown"
)

// Drivers is the ConfigMap that lists the drivers for the admission policy.
const Drivers = "exeunt-drivers"

// Policy is the name of the admission policy and of its binding.
const Policy = "exeunt-finalizer-before-deletion"

// The service accounts of the two programs and their namespace.
const (
	Namespace    = "exeunt-system"
	PVController = "pv-controller"
	Provisioner  = "provisioner"
)

// The label that the chart puts on all its objects.
const (
	PartOf  = "app.kubernetes.io/part-of"
	Project = "exeunt"
)
