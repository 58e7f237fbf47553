// Package identity derives the names under which a provisioner process appears: the
// names and namespaces of its Leases, the sources of its events, and the
// volume attribute that names it. All names are those of csi-provisioner, so that replicas of
// both share one lease, and dashboards and alerts keep their queries.
package identity
