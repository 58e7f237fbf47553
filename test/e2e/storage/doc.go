// Package storage tests claims and volumes on real API servers:
//
//   - binding: claims find volumes and classes; waiting objects cost no requests
//   - provisioning: volumes, clones, snapshots, secrets, topology, capacity and node deployment
//   - reclaim: deletion of CSI volumes in every order, with every policy and gate
//   - intree: the host-path plugin provisions, deletes and recycles
//   - journal: volumes whose creation has an unknown outcome
package storage
