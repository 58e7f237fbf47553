// Package storage is the vocabulary that all packages share:
//
//	[Policy], [Phase]          reclaim policy and phase of a volume
//	[ClaimRelation]            relation of a volume to the claim that it refers to
//	[Record]                   relation of the PersistentVolume with the name of a claim's volume to the claim
//	[DataSource]               object that a claim's volume is filled from
//	[QuietWait]                how long a wait is not reported
//	Ann...                     annotations, with the names of k8s.io/component-helpers/storage/volume
//	ClaimClass, IsDynamic, ... accessors on claims and volumes
//
// It decides nothing, does no I/O and knows no clock.
package storage
