package check_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/storage"
	. "github.com/exeunt-io/exeunt/test/model/check"
)

const (
	pvProtection  = "kubernetes.io/pv-protection"
	pvcProtection = "kubernetes.io/pvc-protection"
	externalName  = "external-provisioner.volume.kubernetes.io/finalizer"
	inTreeName    = "kubernetes.io/pv-controller"
	cloneSource   = "provisioner.storage.kubernetes.io/cloning-protection"
	foreign       = "example.com/backup"
)

// one is a list of one edit.
func one(change edit) []edit { return []edit{change} }

func annotate(key, value string) edit {
	return volume(func(v *v1.PersistentVolume) { v.Annotations[key] = value })
}

func annotateClaim(key, value string) edit {
	return claim(func(c *v1.PersistentVolumeClaim) { c.Annotations = map[string]string{key: value} })
}

func newVolume(policy v1.PersistentVolumeReclaimPolicy, finalizers ...string) edit {
	return func(s *Snapshot) {
		v := volumeNamed(name, handle, claimUID)
		v.Spec.PersistentVolumeReclaimPolicy, v.Finalizers = policy, finalizers
		s.Volumes = append(s.Volumes, v)
	}
}

var unrecorded = []edit{pending, noVolume, entry()}

var volumeCases = map[string]stepCase{
	"nothing changes":                             {nil, nil, byLoops, nil, nil},
	"a write changes nothing":                     {nil, nil, Step{Actor: Provisioner, Unchanged: true}, nil, []Rule{NoopWrite}},
	"a write of a user changes nothing":           {nil, nil, Step{Actor: "user", Unchanged: true}, nil, nil},
	"Delete volume is recorded with finalizer":    {unrecorded, one(newVolume("Delete", externalName)), byOurs, nil, nil},
	"Delete volume is recorded without finalizer": {unrecorded, one(newVolume("Delete", pvProtection)), byOurs, nil, []Rule{FirstWrite}},
	"the same with the gate off":                  {unrecorded, one(newVolume("Delete", pvProtection)), Step{Actor: Provisioner}, nil, nil},
	"Retain volume is recorded with finalizer":    {unrecorded, one(newVolume("Retain", externalName)), byOurs, nil, []Rule{FirstWrite}},
	"Retain volume is recorded without finalizer": {unrecorded, one(newVolume("Retain", pvProtection)), byOurs, nil, nil},
	"in-tree volume is recorded with finalizer":   {unrecorded, one(newVolume("Delete", inTreeName)), byLoops, nil, nil},
	"upstream records a volume without finalizer": {unrecorded, one(newVolume("Delete")), Step{Actor: UpstreamProvisioner}, nil, nil},
	"disk that a user keeps is recorded":          {append(unrecorded, kept, noClaim), one(newVolume("Delete", externalName)), byOurs, nil, []Rule{KeptRecorded}},
	"the claim of a kept disk still waits":        {append(unrecorded, kept), one(newVolume("Delete", externalName)), byOurs, nil, nil},
	"a user records the disk that he keeps":       {append(unrecorded, kept), one(newVolume("Delete")), byUser, nil, nil},
	"provisioner adds its finalizer": {one(finalizers(pvProtection, foreign)),
		one(finalizers(pvProtection, foreign, externalName)), byOurs, nil, nil},
	"provisioner changes the order of finalizers": {one(finalizers(pvProtection, foreign)),
		one(finalizers(foreign, pvProtection, externalName)), byOurs, nil, []Rule{ForeignFinalizer}},
	"provisioner removes a finalizer of others": {one(finalizers(pvProtection, foreign, externalName)),
		one(finalizers(pvProtection, externalName)), byOurs, nil, []Rule{ForeignFinalizer}},
	"provisioner adds pv-protection": {one(finalizers(externalName)),
		one(finalizers(externalName, pvProtection)), byOurs, nil, []Rule{ForeignFinalizer}},
	"pv-controller adds pv-protection": {one(finalizers(externalName)), one(finalizers(externalName, pvProtection)), byLoops, nil, nil},
	"pv-controller adds the provisioner's": {one(finalizers(pvProtection)),
		one(finalizers(externalName, pvProtection)), byLoops, nil, []Rule{ForeignFinalizer}},
	"pv-controller removes that of a CSI volume": {[]edit{policy("Retain")}, one(finalizers(pvProtection)), byLoops, nil, []Rule{ForeignFinalizer}},
	"pv-controller exchanges both in-tree":       {one(volume(hostPath)), one(finalizers(pvProtection, inTreeName)), byLoops, nil, nil},
	"a user removes every finalizer":             {nil, one(finalizers()), byUser, nil, nil},
	"object goes with a finalizer of others": {[]edit{released, deleting, noDisk, finalizers(foreign, externalName)},
		one(noVolume), byOurs, nil, []Rule{ForeignFinalizer}},
	"object goes with our finalizer": {[]edit{released, deleting, noDisk, finalizers(externalName)}, one(noVolume), byOurs, nil, nil},
	"finalizer is removed before the disk": {[]edit{released, deleting, finalizers(pvProtection, externalName)},
		one(finalizers(pvProtection)), byOurs, nil, []Rule{FinalizerRemovedEarly}},
	"last finalizer is removed before the disk": {[]edit{released, deleting, finalizers(externalName)}, one(noVolume),
		byOurs, nil, []Rule{Forgotten, FinalizerRemovedEarly}},
	"finalizer is removed with the gate off": {[]edit{released, deleting, finalizers(pvProtection, externalName)},
		one(finalizers(pvProtection)), Step{Actor: Provisioner}, nil, nil},
	"finalizer is removed with policy Retain": {[]edit{policy("Retain")}, one(finalizers(pvProtection)), byOurs, nil, nil},
	"finalizer of an unclaimed volume is removed": {[]edit{noClaim, deleting, claimRef(""), phase(v1.VolumeAvailable)},
		one(finalizers(pvProtection)), byOurs, nil, nil},
	"the driver lied about the deletion":         {[]edit{released, deleting, givenUp}, one(finalizers(pvProtection)), byOurs, nil, nil},
	"claimRef is given to another claim":         {[]edit{noClaim}, one(claimRef("uid-2")), byLoops, nil, []Rule{WrongBinding}},
	"a user gives the claimRef to another claim": {[]edit{noClaim}, one(claimRef("uid-2")), byUser, nil, nil},
	"claimRef gets the UID of its claim":         {[]edit{claimRef(""), phase(v1.VolumeAvailable)}, one(claimRef(claimUID)), byLoops, nil, nil},
	"claimRef of a bound volume is cleared":      {nil, one(claimRef("")), byLoops, nil, []Rule{WrongBinding}},
	"claimRef of a released volume is cleared":   {one(released), one(claimRef("")), byLoops, nil, []Rule{WrongBinding}},
	"claimRef of a recycled volume is cleared":   {[]edit{released, policy("Recycle")}, one(claimRef("")), byLoops, nil, nil},
	"claimRef is cleared, the claim has another": {one(elsewhere), one(claimRef("")), byLoops, nil, nil},
	"claim was bound elsewhere at the live read": {nil, one(claimRef("")), byLoops, one(elsewhere), nil},
	"volume of a bound claim becomes Released":   {nil, one(phase(v1.VolumeReleased)), byLoops, nil, []Rule{ReleasedEarly}},
	"volume of a completed claim becomes Released": {[]edit{claim(func(c *v1.PersistentVolumeClaim) {
		c.Status.Phase = v1.ClaimPending
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, storage.AnnBindCompleted, "yes")
	})}, one(phase(v1.VolumeReleased)), byLoops, nil, []Rule{ReleasedEarly}},
	"claim of an existing volume becomes Lost": {nil,
		one(claim(func(c *v1.PersistentVolumeClaim) { c.Status.Phase = v1.ClaimLost })), byLoops, nil, []Rule{WrongBinding}},
	"claim of a vanished volume becomes Lost": {[]edit{noVolume, givenUp},
		one(claim(func(c *v1.PersistentVolumeClaim) { c.Status.Phase = v1.ClaimLost })), byLoops, nil, nil},
	"volume of a bound claim becomes Failed":     {nil, one(phase(v1.VolumeFailed)), Step{Actor: UpstreamLoops}, nil, []Rule{ReleasedEarly}},
	"volume of a claim that is gone is Released": {one(noClaim), one(phase(v1.VolumeReleased)), byLoops, nil, nil},
	"volume of a new claim of the name": {one(claim(func(c *v1.PersistentVolumeClaim) { c.UID = "uid-2" })),
		one(phase(v1.VolumeReleased)), byLoops, nil, nil},
	"volume of an unbound claim becomes Released": {[]edit{pending, deleting, phase(v1.VolumePending)}, one(phase(v1.VolumeReleased)), byLoops, nil, nil},
	"pv-protection of a bound volume is removed":  {one(deleting), one(finalizers(externalName)), byLoops, nil, []Rule{ChangedDeletionOrder}},
	"pv-protection of a released volume":          {[]edit{released, deleting}, one(finalizers(externalName)), byLoops, nil, nil},
	"bound volume goes with pv-protection": {[]edit{deleting, finalizers(pvProtection)}, one(noVolume), byLoops,
		nil, []Rule{Forgotten, ChangedDeletionOrder}},
	"a user removes pv-protection":         {one(deleting), one(finalizers(externalName)), byUser, nil, nil},
	"provisioner writes its annotation":    {nil, one(annotate(reclaim.Annotation, "pending")), byOurs, nil, nil},
	"pv-controller writes that annotation": {nil, one(annotate(reclaim.Annotation, "pending")), byLoops, nil, []Rule{ForeignMetadata}},
	"pv-controller writes migrated-to":     {nil, one(annotate(storage.AnnMigratedTo, driver)), byLoops, nil, nil},
	"provisioner removes an annotation of others": {one(annotate("example.com/a", "b")),
		one(volume(func(v *v1.PersistentVolume) { delete(v.Annotations, "example.com/a") })), byOurs, nil,
		[]Rule{ForeignMetadata}},
	"pv-controller writes a label": {nil,
		one(volume(func(v *v1.PersistentVolume) { v.Labels = map[string]string{"a": "b"} })), byLoops, nil,
		[]Rule{ForeignMetadata}},
	"a user writes label and annotation": {nil, []edit{annotate("a", "b"),
		volume(func(v *v1.PersistentVolume) { v.Labels = map[string]string{"a": "b"} })}, byUser, nil, nil},
	"program changes the policy": {nil, one(policy("Retain")), byLoops, nil, []Rule{PolicyChanged}},
	"program changes the handle": {nil,
		one(volume(func(v *v1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "handle-2" })), byOurs, nil,
		[]Rule{PolicyChanged}},
	"a user changes the policy":          {nil, one(policy("Retain")), byUser, nil, nil},
	"reclaimed volume is deleted":        {[]edit{released, noDisk}, one(deleting), byOurs, nil, nil},
	"volume is deleted before its disk":  {[]edit{released}, one(deleting), byOurs, nil, []Rule{ObjectDeleted}},
	"volume is deleted, the driver lied": {[]edit{released, givenUp}, one(deleting), byOurs, nil, nil},
	"Available volume gets the finalizer": {[]edit{noClaim, claimRef(""), phase(v1.VolumeAvailable),
		finalizers(pvProtection)}, one(finalizers(pvProtection, externalName)), byOurs, nil, []Rule{FinalizerMisplaced}},
	"Retain volume gets the finalizer": {[]edit{policy("Retain"), finalizers(pvProtection)},
		one(finalizers(pvProtection, externalName)), byOurs, nil, []Rule{FinalizerMisplaced}},
	"bound volume is deleted":                  {nil, one(deleting), byOurs, nil, []Rule{ObjectDeleted}},
	"Retain volume is deleted":                 {[]edit{released, policy("Retain")}, one(deleting), byOurs, nil, []Rule{ObjectDeleted}},
	"policy became Retain after the live read": {[]edit{released, noDisk, policy("Retain")}, one(deleting), byOurs, []edit{released, noDisk}, nil},
	"policy became Retain before the live read": {[]edit{released, noDisk, policy("Retain")}, one(deleting), byOurs,
		[]edit{released, noDisk, policy("Retain")}, []Rule{ObjectDeleted}},
	"policy became Retain after DeleteVolume": {[]edit{released, noDisk, deletedBefore, policy("Retain")}, one(deleting), byOurs, nil, nil},
	"claimRef removed after DeleteVolume": {[]edit{noClaim, claimRef(""), phase(v1.VolumeAvailable), noDisk, deletedBefore},
		one(deleting), byOurs, nil, nil},
	"claimRef removed before DeleteVolume": {[]edit{noClaim, claimRef(""), phase(v1.VolumeAvailable), noDisk},
		one(deleting), byOurs, nil, []Rule{ObjectDeleted}},
	"bound again after DeleteVolume":             {[]edit{noDisk, deletedBefore}, one(deleting), byOurs, nil, []Rule{ObjectDeleted}},
	"disk is there again after DeleteVolume":     {[]edit{released, deletedBefore, policy("Retain")}, one(deleting), byOurs, nil, []Rule{ObjectDeleted}},
	"deleted without a live read since creation": {[]edit{released, noDisk}, one(deleting), byOurs, one(noVolume), nil},
	"bound volume without finalizers is deleted": {[]edit{noDisk, finalizers()}, one(noVolume), byOurs, nil, []Rule{ObjectDeleted}},
	"a user deletes a bound volume":              {nil, one(deleting), byUser, nil, nil},
	"another volume of the same name is a new one": {[]edit{released, noDisk, kept},
		one(volume(func(v *v1.PersistentVolume) { v.UID = "again" })), byUser, nil, nil},
}

// elsewhere is a claim that is bound to another volume.
func elsewhere(s *Snapshot) { s.Claims[0].Spec.VolumeName = "other" }

var claimCases = map[string]stepCase{
	"pv-controller adds pvc-protection":          {one(claimFinalizers(foreign)), one(claimFinalizers(foreign, pvcProtection)), byLoops, nil, nil},
	"provisioner adds pvc-protection":            {one(claimFinalizers()), one(claimFinalizers(pvcProtection)), byOurs, nil, []Rule{ForeignFinalizer}},
	"program adds an unknown finalizer":          {nil, one(claimFinalizers(pvcProtection, foreign)), byLoops, nil, []Rule{ClaimHeld}},
	"clone source gets its finalizer":            {one(otherClaim(clone)), one(claimFinalizers(pvcProtection, cloneSource)), byOurs, nil, nil},
	"clone was deleted after the read":           {nil, one(claimFinalizers(pvcProtection, cloneSource)), byOurs, one(otherClaim(clone)), nil},
	"claim that is no source gets its finalizer": {one(otherClaim()), one(claimFinalizers(pvcProtection, cloneSource)), byOurs, nil, []Rule{ClaimHeld}},
	"program removes a finalizer of others": {one(claimFinalizers(foreign, pvcProtection)),
		one(claimFinalizers(pvcProtection)), byLoops, nil, []Rule{ForeignFinalizer}},
	"claim goes with a finalizer of others": {[]edit{claimDeleting, claimFinalizers(foreign)}, one(noClaim), byLoops, nil, []Rule{ForeignFinalizer}},
	"claim loses pvc-protection, no pod":    {one(claimDeleting), one(noClaim), byLoops, nil, nil},
	"claim loses pvc-protection, a pod uses it": {[]edit{claimDeleting, pod("node"),
		claimFinalizers(pvcProtection, foreign)}, one(claimFinalizers(foreign)), byLoops, nil, []Rule{ChangedDeletionOrder}},
	"claim goes while a pod uses it":        {[]edit{claimDeleting, pod("node")}, one(noClaim), byLoops, nil, []Rule{ChangedDeletionOrder}},
	"pod was scheduled after the live list": {[]edit{claimDeleting, pod("node")}, one(noClaim), byLoops, []edit{claimDeleting, pod("")}, nil},
	"unscheduled pod":                       {[]edit{claimDeleting, pod("")}, one(noClaim), byLoops, nil, nil},
	"claim gets its first volume": {[]edit{pending, phase(v1.VolumeBound)},
		one(func(s *Snapshot) { s.Claims[0].Spec.VolumeName = name }), byLoops, nil, nil},
	"claim gets another volume":      {nil, one(elsewhere), byLoops, nil, []Rule{WrongBinding}},
	"a user gives it another volume": {nil, one(elsewhere), byUser, nil, nil},
	"second claim becomes Bound": {one(otherClaim(unbound)),
		one(func(s *Snapshot) { s.Claims[1].Status.Phase = v1.ClaimBound }), byLoops, nil, []Rule{WrongBinding}},
	"second claim is Bound to its own volume": {one(otherClaim(unbound, ownVolume)),
		one(func(s *Snapshot) { s.Claims[1].Status.Phase = v1.ClaimBound }), byLoops, nil, nil},
	"pv-controller selects the provisioner":      {one(pending), one(annotateClaim(storage.AnnStorageProvisioner, driver)), byLoops, nil, nil},
	"provisioner selects the provisioner":        {one(pending), one(annotateClaim(storage.AnnStorageProvisioner, driver)), byOurs, nil, []Rule{ForeignMetadata}},
	"provisioner removes the selected node":      {[]edit{pending, annotateClaim(storage.AnnSelectedNode, "node")}, one(pending), byOurs, nil, nil},
	"program deletes a claim":                    {nil, one(claimDeleting), byLoops, nil, []Rule{ObjectDeleted}},
	"program deletes a claim without finalizers": {one(claimFinalizers()), one(noClaim), byLoops, nil, []Rule{ObjectDeleted}},
	"a user deletes a claim":                     {nil, one(claimDeleting), byUser, nil, nil},
	"a user creates a claim with a finalizer": {one(noClaim),
		one(otherClaim(func(c *v1.PersistentVolumeClaim) { c.Finalizers = []string{foreign} })), byUser, nil, nil},
	"upstream adds a finalizer of its own": {nil, one(claimFinalizers(pvcProtection, cloneSource)), Step{Actor: UpstreamProvisioner}, nil, nil},
	"a new claim of the name replaces the old": {one(claimDeleting),
		one(func(s *Snapshot) { s.Claims[0] = claimNamed("claim", "uid-2", "other") }), byLoops, nil, nil},
	"a pod of another claim does not use this": {[]edit{claimDeleting, pod("node"),
		claim(func(c *v1.PersistentVolumeClaim) { c.Name = "third" })}, one(noClaim), byLoops, nil, nil},
	"finalizers of one claim, order of own parts": {one(claimFinalizers(cloneSource, foreign)), one(claimFinalizers(foreign)), byOurs, nil, nil},
}

// clone makes a claim a clone of the first claim, which waits for its volume.
func clone(c *v1.PersistentVolumeClaim) {
	c.Status.Phase, c.Spec.VolumeName, c.Annotations = v1.ClaimPending, "", nil
	c.Spec.DataSource = &v1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "claim"}
}

func unbound(c *v1.PersistentVolumeClaim) { c.Status.Phase = v1.ClaimPending }

func ownVolume(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "other" }

func TestWritesOfVolumes(t *testing.T) {
	for name, tc := range volumeCases {
		t.Run(name, tc.run)
	}
}

func TestWritesOfClaims(t *testing.T) {
	for name, tc := range claimCases {
		t.Run(name, tc.run)
	}
}

// Long lists are searched by an index, which must find the same.
func TestLongListsAreCheckedAlike(t *testing.T) {
	others := func(s *Snapshot) {
		for i := range 50 {
			other := fmt.Sprintf("pvc-others-%d", i)
			v, c := volumeNamed(other, "handle-"+other, types.UID("others-"+other)),
				claimNamed(other, types.UID("others-"+other), other)
			s.Volumes, s.Claims = slices.Insert(s.Volumes, 0, v), slices.Insert(s.Claims, 0, c)
			s.Disks = append(s.Disks, Disk{Handle: "handle-" + other, Name: other})
		}
	}
	for _, cases := range []map[string]stepCase{callCases, forgottenCases, volumeCases, claimCases} {
		for name, tc := range cases {
			t.Run(name, func(t *testing.T) {
				before, after := bound(append(slices.Clone(tc.given), others)...),
					bound(append(slices.Concat(tc.given, tc.then), others)...)
				slices.Reverse(after.Volumes) // no object is where it was
				slices.Reverse(after.Claims)
				step := tc.step
				if tc.since != nil {
					step.Since = bound(append(slices.Clone(tc.since), others)...)
				}
				if got := rulesOf(t, Broken(before, after, step)); !slices.Equal(got, tc.want) {
					t.Errorf("broken rules are %v, want %v", got, tc.want)
				}
			})
		}
	}
}

// A step of two volumes and two claims with one write, as the model has millions of.
func pairs() (before, after *Snapshot) {
	before = bound(otherClaim(ownVolume),
		otherVolume(func(v *v1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "handle-2" }), disk("handle-2", "other"),
		entry(second))
	after = &Snapshot{Volumes: slices.Clone(before.Volumes), Claims: before.Claims, Entries: before.Entries,
		Disks: before.Disks}
	changed := before.Volumes[1].DeepCopy()
	changed.Annotations[storage.AnnMigratedTo], changed.ResourceVersion = driver, "2"
	after.Volumes[1] = changed
	return before, after
}

func TestSafeStepAllocatesNothing(t *testing.T) {
	before, after := pairs()
	released := bound(released)
	gone := bound(func(s *Snapshot) { s.Claims, s.Disks, s.Volumes[0].Status.Phase = nil, nil, v1.VolumeReleased })
	if got := testing.AllocsPerRun(100, func() {
		if found := Broken(before, after, byLoops); len(found) > 0 {
			t.Errorf("violations %v", found)
		}
		if found := Broken(released, gone, deletion); len(found) > 0 {
			t.Errorf("violations %v", found)
		}
	}); got > 0 {
		t.Errorf("%v allocations", got)
	}
}

func BenchmarkBroken(b *testing.B) {
	before, after := pairs()
	b.ReportAllocs()
	for b.Loop() {
		if found := Broken(before, after, byLoops); len(found) > 0 {
			b.Fatal(found)
		}
	}
}

func BenchmarkAtRest(b *testing.B) {
	s, _ := pairs()
	s.Entries = nil
	b.ReportAllocs()
	for b.Loop() {
		AtRest(s, Wanted{Driver: driver, Honor: true, Classes: []string{"fast"}})
	}
}
