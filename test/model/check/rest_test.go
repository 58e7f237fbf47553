package check_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/reclaim"
	. "github.com/exeunt-io/exeunt/test/model/check"
)

const class = "fast"

var wanted = Wanted{Driver: driver, Honor: true, Classes: []string{class}}

// restCase is the bound cluster with edits, once nothing moves any more.
type restCase struct {
	given  []edit
	wanted Wanted
	want   []Rule
}

// waiting is a claim of the class that never got a volume.
func waiting(s *Snapshot) {
	unprovisioned(s)
	s.Claims[0].Spec.StorageClassName = new(class)
}

var (
	gateOff      = Wanted{Driver: driver, Classes: []string{class}}
	administered = Wanted{Driver: driver, Honor: true, Unresolved: true}
	exempt       = Wanted{Driver: driver, Honor: true, Exempt: []types.UID{"volume-" + name, claimUID}}
)

// rebound is a claim that is bound to a second volume.
func rebound(s *Snapshot) {
	elsewhere(s)
	otherVolume(func(v *v1.PersistentVolume) { v.Spec.CSI.VolumeHandle, v.Spec.ClaimRef.UID = "handle-2", claimUID })(s)
	disk("handle-2", "other")(s)
}

var restCases = map[string]restCase{
	"bound claim":             {nil, wanted, nil},
	"nothing":                 {[]edit{noVolume, noClaim, noDisk}, wanted, nil},
	"deleted bound volume":    {[]edit{deleting}, wanted, nil},
	"deleted released volume": {[]edit{released, noDisk, deleting}, wanted, []Rule{StuckVolume}},
	"deleted released volume of others' finalizer": {[]edit{released, noDisk, deleting, finalizers(foreign)}, wanted, nil},
	"the same with our finalizer":                  {[]edit{released, noDisk, deleting, finalizers(foreign, externalName)}, wanted, []Rule{StuckVolume}},
	"deleted Retain volume":                        {[]edit{released, deleting, policy("Retain"), finalizers(pvProtection)}, wanted, []Rule{StuckVolume}},
	"deleted unclaimed volume":                     {[]edit{noClaim, deleting, claimRef(""), phase(v1.VolumeAvailable)}, wanted, []Rule{StuckVolume}},
	"deleted volume of a claim that is not bound":  {[]edit{pending, deleting, phase(v1.VolumePending)}, wanted, []Rule{StuckVolume}},
	"the same, the claim is being deleted":         {[]edit{pending, deleting, claimDeleting, pod("node"), phase(v1.VolumePending)}, wanted, nil},
	"two deleted volumes of one disk":              {[]edit{released, deleting, otherVolume(deleted)}, wanted, nil},
	"deleted attached volume":                      {[]edit{released, deleting, attached}, wanted, nil},
	"Bound claim, its volume is another claim's": {[]edit{claimRef("uid-2"), policy("Retain"), finalizers(pvProtection),
		phase(v1.VolumeReleased)}, wanted, []Rule{NotBound}},
	"Bound claim without its volume": {[]edit{noVolume, kept}, wanted, []Rule{NotBound}},
	"users left the objects so":      {[]edit{released, noDisk, deleting}, exempt, nil},
	"released Delete volume":         {[]edit{released}, wanted, []Rule{Unreclaimed}},
	"failed Delete volume":           {[]edit{released, phase(v1.VolumeFailed)}, wanted, []Rule{Unreclaimed}},
	"released Retain volume":         {[]edit{released, policy("Retain"), finalizers(pvProtection)}, wanted, nil},
	"released volumes of one disk": {[]edit{released,
		otherVolume(func(v *v1.PersistentVolume) { v.Status.Phase = v1.VolumeReleased })}, wanted, nil},
	"provisioned volume, claim bound elsewhere": {[]edit{rebound, phase(v1.VolumeReleased)}, wanted, []Rule{Unreclaimed}},
	"static volume, claim bound elsewhere":      {[]edit{rebound, volume(static)}, wanted, []Rule{WrongPhase}},
	"static volume became Available again":      {[]edit{rebound, volume(static), claimRef(""), phase(v1.VolumeAvailable)}, wanted, nil},
	"phase Bound, the claim is gone":            {[]edit{noClaim, policy("Retain"), finalizers(pvProtection)}, wanted, []Rule{WrongPhase}},
	"phase Released, the claim is bound":        {[]edit{phase(v1.VolumeReleased)}, wanted, []Rule{WrongPhase}},
	"phase Pending, unclaimed":                  {[]edit{noClaim, claimRef(""), phase(v1.VolumePending)}, wanted, []Rule{WrongPhase}},
	"volume without pv-protection":              {[]edit{finalizers(externalName)}, wanted, []Rule{Unprotected}},
	"released attached volume, unprotected":     {[]edit{released, attached, finalizers(externalName)}, wanted, nil},
	"the same, kept with policy Retain":         {[]edit{released, attached, finalizers(), policy("Retain")}, wanted, []Rule{Unprotected}},
	"claim without pvc-protection":              {[]edit{claimFinalizers()}, wanted, []Rule{Unprotected}},
	"bound Delete volume without finalizer":     {[]edit{finalizers(pvProtection)}, wanted, []Rule{WrongFinalizer}},
	"the same of another driver":                {[]edit{finalizers(pvProtection)}, Wanted{Driver: "other", Honor: true}, nil},
	"the same, too late to protect":             {[]edit{finalizers(pvProtection), deleting}, wanted, []Rule{WrongFinalizer}},
	"the same, marked for the reclaim":          {[]edit{deleting, finalizers(pvProtection), volume(marked)}, wanted, nil},
	"the same with the gate off":                {[]edit{finalizers(pvProtection)}, gateOff, nil},
	"finalizer with the gate off":               {nil, gateOff, []Rule{WrongFinalizer}},
	"finalizer with policy Retain":              {[]edit{policy("Retain")}, wanted, []Rule{WrongFinalizer}},
	"Retain volume without finalizer":           {[]edit{policy("Retain"), finalizers(pvProtection)}, wanted, nil},
	"deleted claim that nothing uses":           {[]edit{claimDeleting}, wanted, []Rule{StuckClaim}},
	"deleted claim that a pod uses":             {[]edit{claimDeleting, pod("node")}, wanted, nil},
	"deleted claim with a finalizer of others":  {[]edit{claimDeleting, claimFinalizers(foreign)}, wanted, nil},
	"deleted source of a clone that waits":      {[]edit{claimDeleting, claimFinalizers(cloneSource), otherClaim(clone)}, wanted, nil},
	"deleted source without clones":             {[]edit{claimDeleting, claimFinalizers(cloneSource)}, wanted, []Rule{StuckClaim}},
	"claim of a class":                          {[]edit{waiting}, wanted, []Rule{NotBound}},
	"claim of an unknown class":                 {[]edit{waiting}, Wanted{Driver: driver, Honor: true}, nil},
	"claim without a class":                     {[]edit{unprovisioned}, wanted, nil},
	"deleted claim of a class":                  {[]edit{waiting, claimDeleting, pod("node")}, wanted, nil},
	"claim of a class that a user left so":      {[]edit{waiting}, exempt, nil},
	"claim names its volume and is Pending":     {[]edit{claim(unbound)}, wanted, []Rule{NotBound}},
	"claim is Lost, its volume is back":         {[]edit{claim(func(c *v1.PersistentVolumeClaim) { c.Status.Phase = v1.ClaimLost })}, wanted, []Rule{NotBound}},
	"claim is Lost, a user keeps its disk": {[]edit{noVolume, kept,
		claim(func(c *v1.PersistentVolumeClaim) { c.Status.Phase = v1.ClaimLost })}, wanted, nil},
	"disk that nobody names":                       {[]edit{disk("handle-2", "pvc-uid-2")}, wanted, []Rule{Leaked}},
	"disk that a user keeps":                       {[]edit{noVolume, noClaim, kept}, wanted, nil},
	"disk that a user gave up":                     {[]edit{noVolume, noClaim, givenUp}, wanted, nil},
	"disk of a volume that only others keep":       {[]edit{released, deleting, finalizers(foreign)}, wanted, []Rule{Leaked}},
	"the same, given up":                           {[]edit{released, deleting, givenUp, finalizers(foreign)}, wanted, nil},
	"the same with policy Retain":                  {[]edit{released, deleting, policy("Retain"), finalizers(foreign)}, wanted, nil},
	"disk of an unresolved entry":                  {[]edit{noVolume, noClaim, entry(unresolved, custodyBroken)}, wanted, nil},
	"journal entry":                                {[]edit{entry()}, wanted, []Rule{EntryLeft}},
	"unresolved entry":                             {[]edit{entry(unresolved)}, wanted, []Rule{EntryLeft}},
	"unresolved entry, claim gone":                 {[]edit{noVolume, noClaim, entry(unresolved)}, wanted, []Rule{EntryLeft}},
	"unresolved entry, volume may be kept":         {[]edit{noVolume, noClaim, entry(unresolved, announced)}, wanted, nil},
	"unresolved entry that may remain":             {[]edit{entry(unresolved)}, administered, nil},
	"journal entry beside unresolved ones":         {[]edit{entry()}, administered, []Rule{EntryLeft}},
	"bound volume without a disk":                  {[]edit{noDisk}, wanted, []Rule{DiskMissing}},
	"bound volume without a disk, the driver lied": {[]edit{noDisk, givenUp}, wanted, nil},
	"bound volume without a handle":                {[]edit{noDisk, volume(func(v *v1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "" })}, wanted, nil},
	"disk that a user keeps is gone":               {[]edit{noVolume, noClaim, noDisk, kept}, wanted, []Rule{DiskMissing}},
}

func marked(v *v1.PersistentVolume) {
	metav1.SetMetaDataAnnotation(&v.ObjectMeta, reclaim.Annotation, reclaim.AnnotationPending)
}

func deleted(v *v1.PersistentVolume) {
	v.DeletionTimestamp = &epoch
	v.Status.Phase = v1.VolumeReleased
}

func TestAtRest(t *testing.T) {
	for name, tc := range restCases {
		t.Run(name, func(t *testing.T) {
			if got := rulesOf(t, AtRest(bound(tc.given...), tc.wanted)); !slices.Equal(got, tc.want) {
				t.Errorf("broken rules are %v, want %v", got, tc.want)
			}
		})
	}
}
