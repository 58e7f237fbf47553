package model

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/test/model/check"
	"github.com/exeunt-io/exeunt/test/model/upstream"
)

// What upstream's programs do wrong beside ours.
var (
	protectionRemoved = Excuse{
		Rule: check.Forgotten, Actor: check.UpstreamLoops,
		Why: "removes pv-protection from a volume that was deleted before it was Bound, and so before it got a finalizer",
	}
	deletedVolumeKept = Excuse{
		Rule: check.StuckVolume, Sentence: "claim Unbound", Also: []check.Rule{check.NotBound},
		Why: "kube-controller-manager neither binds nor releases a volume that was deleted before its claim was bound",
	}
	volumeUnrecorded = Excuse{
		Rule: check.Forgotten, Actor: check.UpstreamProvisioner, Harmless: true,
		Why: "calls CreateVolume before anything records the request",
	}
	crashLeaks = Excuse{
		Rule: check.Leaked, Why: "external-provisioner#486: csi-provisioner dies between CreateVolume and the PersistentVolume",
	}
	createdAgain = Excuse{
		Rule: check.CreatedTwice, Actor: check.UpstreamProvisioner, Harmless: true,
		Why: "calls CreateVolume again while its cache does not show the volume",
	}
	createdForGone = Excuse{
		Rule: check.CreatedUnwanted, Actor: check.UpstreamProvisioner,
		Why: "calls CreateVolume for a claim that is gone, by its cache or its memory",
	}
	deletedAgain = Excuse{
		Rule: check.DeletedTwice, Actor: check.UpstreamProvisioner, Harmless: true,
		Why: "calls DeleteVolume again while its cache does not show that the volume is gone",
	}
	recordedAgain = Excuse{
		Rule: check.DiskMissing, Beside: true,
		Why: "csi-provisioner writes a PersistentVolume again after its answer was lost and its disk deleted",
	}
)

// besideExcuses are the excuses of each world.
var besideExcuses = map[string][]Excuse{
	"static Delete beside kube-controller-manager, an interruption":  {protectionRemoved},
	"static Delete beside kube-controller-manager, a crash":          {protectionRemoved},
	"static Delete beside kube-controller-manager, a lost answer":    {protectionRemoved},
	"static Delete beside kube-controller-manager, a failed call":    {protectionRemoved},
	"static Delete beside kube-controller-manager, a denied write":   {protectionRemoved},
	"dynamic Delete beside kube-controller-manager":                  {deletedVolumeKept},
	"dynamic Delete beside kube-controller-manager, an interruption": {deletedVolumeKept},
	"dynamic Delete beside kube-controller-manager, a stalled watch": {deletedVolumeKept},
	"dynamic Delete beside kube-controller-manager, a crash":         {deletedVolumeKept},
	"dynamic Delete beside kube-controller-manager, a lost answer":   {deletedVolumeKept},
	"dynamic Delete beside kube-controller-manager, a failed call":   {deletedVolumeKept},
	"dynamic Delete beside kube-controller-manager, a denied write":  {deletedVolumeKept},
	"dynamic Retain beside kube-controller-manager, a crash":         {deletedVolumeKept},
	"dynamic Retain beside kube-controller-manager, a lost answer":   {deletedVolumeKept},
	"dynamic Retain beside kube-controller-manager, a failed call":   {deletedVolumeKept},
	"dynamic Retain beside kube-controller-manager, a denied write":  {deletedVolumeKept},
	"static Delete beside csi-provisioner, a stalled watch":          {deletedAgain},
	"dynamic Delete beside csi-provisioner":                          {volumeUnrecorded},
	"dynamic Delete beside csi-provisioner, an interruption":         {volumeUnrecorded},
	"dynamic Delete beside csi-provisioner, a stalled watch": {
		volumeUnrecorded, createdAgain, createdForGone, deletedAgain,
	},
	"dynamic Delete beside csi-provisioner, a crash":         {volumeUnrecorded, crashLeaks},
	"dynamic Delete beside csi-provisioner, a lost answer":   {volumeUnrecorded, recordedAgain},
	"dynamic Delete beside csi-provisioner, a failed call":   {volumeUnrecorded, createdForGone, recordedAgain},
	"dynamic Delete beside csi-provisioner, a denied write":  {volumeUnrecorded, createdForGone},
	"dynamic Retain beside csi-provisioner":                  {volumeUnrecorded},
	"dynamic Retain beside csi-provisioner, an interruption": {volumeUnrecorded},
	"dynamic Retain beside csi-provisioner, a stalled watch": {volumeUnrecorded, createdAgain, createdForGone},
	"dynamic Retain beside csi-provisioner, a crash":         {volumeUnrecorded, crashLeaks},
	"dynamic Retain beside csi-provisioner, a lost answer":   {volumeUnrecorded},
	"dynamic Retain beside csi-provisioner, a failed call":   {volumeUnrecorded, createdForGone},
	"dynamic Retain beside csi-provisioner, a denied write":  {volumeUnrecorded, createdForGone},
}

// besideLoops runs our provisioner beside upstream's loops, as in a managed cluster.
func besideLoops(c Config) Config {
	c.Name += " beside kube-controller-manager"
	c.Programs = []Program{upstreamLoops(), provisioner()}
	return c
}

// besideSidecar runs our pv-controller beside upstream's provisioner.
func besideSidecar(c Config) Config {
	c.Name += " beside csi-provisioner"
	c.Programs = []Program{pvController(), upstreamProvisioner(upstream.Sidecar)}
	return c
}

// besideWorlds returns the worlds of one program of ours and one of upstream.
func besideWorlds() []Config {
	var all []Config
	for _, pair := range []func(Config) Config{besideLoops, besideSidecar} {
		for _, policy := range []v1.PersistentVolumeReclaimPolicy{
			v1.PersistentVolumeReclaimDelete, v1.PersistentVolumeReclaimRetain,
		} {
			all = slices.Concat(all, worldsOf(pair(static(policy))), worldsOf(pair(dynamic(policy))))
		}
	}
	for i := range all {
		all[i].Excused = besideExcuses[all[i].Name]
	}
	return all
}
