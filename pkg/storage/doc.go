// Package storage is the vocabulary that all packages share: reclaim policies, phases,
// how a volume and a claim refer to each other, the names of annotations as in
// k8s.io/component-helpers, and accessors on claims and volumes.
//
// It decides nothing, does no I/O and knows no clock.
package storage
