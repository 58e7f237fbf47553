// Package nodedeployment selects nodes for claims with Immediate binding where a
// provisioner runs on each node and serves that node only (--node-deployment): it executes
// [provision.DecideNode].
//
// Each process waits for a random time within --node-deployment-base-delay before it
// handles a new claim, so that not all nodes write at once. Then it writes its own node
// into the claim's annotation volume.kubernetes.io/selected-node. The API server accepts
// the first write; the other nodes see the annotation and skip the claim. A node without
// capacity retries, at the latest after --node-deployment-max-delay.
package nodedeployment
