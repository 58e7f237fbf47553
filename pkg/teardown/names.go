package teardown

// The policies that guard Alive and its CRD; their bindings have the same names.
const (
	GuardName           = "exeunt-alive"
	DefinitionGuardName = "exeunt-alive-definition"
)

// What a runner keeps in the cluster, beside Alive.
const (
	// Namespace has the Lease and the record.
	Namespace = "exeunt-system"
	// LeaseName is the Lease of the runners.
	LeaseName = "exeunt-teardown"
	// FreezeName is the policy that refuses new disks and load balancers, and its binding.
	FreezeName = "exeunt-teardown-freeze"
	// ReportName is the ConfigMap that says how the teardown ended, in its annotation PhaseAnnotation; DocumentKey has the
	// document without its items.
	ReportName      = "exeunt-teardown-report"
	PhaseAnnotation = "lifecycle.exeunt.io/phase"
	DocumentKey     = "document.json"
)
