// Package nodedeployment chooses the node of claims whose class binds at once, where a
// provisioner stands on each node and serves that node only: it executes
// [provision.DecideChoice].
//
// Each process draws a time within --node-deployment-base-delay for a new claim, so
// that not all of them write at once, and then writes its own node into the claim's
// annotation volume.kubernetes.io/selected-node. The API server takes the first one;
// the others see who was faster, and leave the claim alone. A node without room
// comes back later, at most after --node-deployment-max-delay.
package nodedeployment
