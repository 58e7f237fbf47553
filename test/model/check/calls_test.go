package check_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
	. "github.com/exeunt-io/exeunt/test/model/check"
)

// stepCase is a step from the bound cluster with the edits of given to the same cluster
// with the edits of then.
type stepCase struct {
	given, then []edit
	step        Step
	// since are the edits of the cluster at the last live read, nil for none.
	since []edit
	want  []Rule
}

func (tc stepCase) run(t *testing.T) {
	step := tc.step
	if tc.since != nil {
		step.Since = bound(tc.since...)
	}
	found := Broken(bound(tc.given...), bound(slices.Concat(tc.given, tc.then)...), step)
	if got := rulesOf(t, found); !slices.Equal(got, tc.want) {
		t.Errorf("broken rules are %v, want %v", got, tc.want)
	}
}

var (
	deletion  = Step{Actor: Provisioner, Kind: DeleteVolume, Handle: handle, Honor: true, Journaled: true}
	creation  = Step{Actor: Provisioner, Kind: CreateVolume, Name: name, Honor: true, Journaled: true}
	ended     = []edit{noDisk}
	made      = []edit{disk(handle, name)}
	faultless = func(step Step) Step { step.Faultless = true; return step }
)

var callCases = map[string]stepCase{
	"disk of a released volume is deleted":  {[]edit{released}, ended, deletion, nil, nil},
	"disk of a failed volume is deleted":    {[]edit{released, phase(v1.VolumeFailed)}, ended, deletion, nil, nil},
	"disk of a bound claim is deleted":      {nil, ended, deletion, nil, []Rule{DataLost}},
	"disk of a bound claim, the call fails": {nil, nil, deletion, nil, []Rule{DataLost}},
	"disk of a bound claim, phase Released": {[]edit{phase(v1.VolumeReleased)}, ended, deletion, nil, []Rule{DataLost}},
	"disk of a Retain volume is deleted":    {[]edit{released, policy(v1.PersistentVolumeReclaimRetain)}, ended, deletion, nil, []Rule{DataLost}},
	"disk of a Recycle volume is deleted":   {[]edit{released, policy(v1.PersistentVolumeReclaimRecycle)}, ended, deletion, nil, []Rule{DataLost}},
	"policy changed after the live read":    {[]edit{released, policy(v1.PersistentVolumeReclaimRetain)}, ended, deletion, []edit{released}, nil},
	"policy changed before the live read": {[]edit{released, policy(v1.PersistentVolumeReclaimRetain)}, ended,
		deletion, []edit{released, policy(v1.PersistentVolumeReclaimRetain)}, []Rule{DataLost}},
	"policy changed back after the live read": {[]edit{released}, ended, deletion, []edit{released, policy(v1.PersistentVolumeReclaimRetain)}, nil},
	"disk shared with an Available volume": {[]edit{released,
		otherVolume(func(v *v1.PersistentVolume) { v.Status.Phase = v1.VolumeAvailable })}, ended, deletion, nil,
		[]Rule{DataLost}},
	"disk shared with a Retain volume": {[]edit{released,
		otherVolume(func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain })}, ended, deletion, nil, []Rule{DataLost}},
	"disk shared with a released volume": {[]edit{released,
		otherVolume(func(v *v1.PersistentVolume) { v.Status.Phase = v1.VolumeReleased })}, ended, deletion, nil, nil},
	"volume has another disk": {[]edit{released,
		otherVolume(func(v *v1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "handle-2" })}, ended, deletion, nil, nil},
	"upstream deletes the disk of a bound claim": {nil, ended, Step{Actor: UpstreamProvisioner, Kind: DeleteVolume, Handle: handle}, nil, []Rule{DataLost}},
	"disk of a host path is deleted while bound": {[]edit{volume(hostPath)}, ended, deletion, nil, []Rule{DataLost}},
	"phase Bound, claim gone":                    {[]edit{noClaim}, ended, deletion, nil, []Rule{DeletedForUnreleased}},
	"volume was never claimed": {[]edit{noClaim, claimRef(""), phase(v1.VolumeReleased)}, ended,
		deletion, nil, []Rule{DeletedForUnreleased}},
	"claim may still be bound":                   {[]edit{pending, phase(v1.VolumeReleased)}, ended, deletion, nil, []Rule{DeletedForUnreleased}},
	"deleted volume whose claim was never bound": {[]edit{pending, phase(v1.VolumeReleased), deleting}, ended, deletion, nil, nil},
	"deleted static volume whose claim is not bound": {[]edit{pending, phase(v1.VolumeReleased), deleting, volume(static)},
		ended, deletion, nil, []Rule{DeletedForUnreleased}},
	"claim is Lost": {[]edit{claim(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "" }),
		phase(v1.VolumeReleased)}, ended, deletion, nil, []Rule{DeletedForUnreleased}},
	"claim is bound elsewhere": {[]edit{claim(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "other" }),
		phase(v1.VolumeReleased)}, ended, deletion, nil, nil},
	"claim of the name has another UID": {[]edit{claim(func(c *v1.PersistentVolumeClaim) { c.UID = "uid-2" }),
		phase(v1.VolumeReleased)}, ended, deletion, nil, nil},
	"nobody names the disk":                        {[]edit{noClaim, noVolume}, ended, deletion, nil, []Rule{DeletedUnrecorded}},
	"a user keeps the disk":                        {[]edit{noClaim, noVolume, kept}, ended, deletion, nil, []Rule{DataLost}},
	"a request names the disk":                     {[]edit{noClaim, noVolume, entry()}, ended, deletion, nil, []Rule{DeletedUnrecorded}},
	"disk is discarded":                            {[]edit{pending, noVolume, entry(discarding)}, ended, deletion, nil, nil},
	"disk is discarded in broken custody":          {[]edit{pending, noVolume, entry(discarding, custodyBroken)}, ended, deletion, nil, []Rule{BrokenCustody}},
	"disk of a bound claim is discarded":           {[]edit{noVolume, entry(discarding)}, ended, deletion, nil, []Rule{DataLost}},
	"journal entry stands":                         {[]edit{released, entry()}, ended, deletion, nil, []Rule{DeletedWithEntry}},
	"journal entry of another volume of the claim": {[]edit{released, entry(func(e *journal.Entry) { e.Volume.Name = "pv-2" })}, ended, deletion, nil, nil},
	"unresolved journal entry stands":              {[]edit{released, entry(unresolved)}, ended, deletion, nil, nil},
	"journal entry of another claim stands":        {[]edit{released, entry(func(e *journal.Entry) { e.UID = "uid-2" })}, ended, deletion, nil, nil},
	"volume is attached":                           {[]edit{released, attached}, ended, deletion, nil, []Rule{DeletedAttached}},
	"volume was attached after the live read":      {[]edit{released, attached}, ended, deletion, []edit{released}, nil},
	"deleted again":                                {[]edit{released, noDisk, deletedBefore}, nil, faultless(deletion), nil, []Rule{DeletedTwice}},
	"deleted again after a fault":                  {[]edit{released, noDisk, deletedBefore}, nil, deletion, nil, nil},
	"disk never existed":                           {[]edit{released, noDisk}, nil, faultless(deletion), nil, nil},
	"disk is created with an entry":                {[]edit{unprovisioned, entry()}, made, faultless(creation), nil, nil},
	"CreateVolume is repeated after a fault":       {[]edit{pending, noVolume, entry()}, nil, creation, nil, nil},
	"CreateVolume is repeated without faults":      {[]edit{pending, noVolume, entry()}, nil, faultless(creation), nil, []Rule{CreatedTwice}},
	"the same for a disk that a user keeps":        {[]edit{pending, noVolume, givenUp, entry()}, nil, faultless(creation), nil, nil},
	"two disks of one name":                        {[]edit{pending, noVolume, entry()}, []edit{disk("handle-2", name)}, creation, nil, []Rule{CreatedTwice}},
	"disk is created for a claim that is gone": {[]edit{unprovisioned, noClaim, calling(true)}, made,
		Step{Actor: Provisioner, Kind: CreateVolume, Name: name}, nil, []Rule{CreatedUnwanted}},
	"claim went after the live read": {[]edit{unprovisioned, noClaim, calling(true)}, made,
		Step{Actor: Provisioner, Kind: CreateVolume, Name: name}, []edit{unprovisioned}, nil},
	"request of a claim that is gone is repeated": {[]edit{unprovisioned, noClaim, entry()}, made, creation, nil, nil},
	"the same in broken custody":                  {[]edit{unprovisioned, noClaim, entry(custodyBroken)}, made, creation, nil, []Rule{BrokenCustody}},
	"claim exists, custody is broken":             {[]edit{unprovisioned, entry(custodyBroken)}, made, creation, nil, nil},
	"disk is created for a Bound claim":           {[]edit{noVolume, noDisk, entry()}, made, creation, nil, []Rule{CreatedForBound}},
	"the same, bound to another volume": {[]edit{noVolume, noDisk, entry(),
		claim(func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv-2" })}, made, creation, nil, nil},
	"disk is created for a Lost claim":    {[]edit{noVolume, noDisk, entry(), lost}, made, creation, nil, []Rule{CreatedForBound}},
	"claim was bound after the live read": {[]edit{noVolume, noDisk, entry()}, made, creation, []edit{unprovisioned}, nil},
	"no entry":                            {[]edit{unprovisioned, calling(true)}, made, creation, nil, []Rule{CreatedWithoutEntry}},
	"no entry, journal off": {[]edit{unprovisioned, calling(true)}, made,
		Step{Actor: Provisioner, Kind: CreateVolume, Name: name}, nil, nil},
	"entry with the claim's UID, not in the name": {[]edit{unprovisioned, entry(func(e *journal.Entry) { e.UID = "uid-1" })}, made, creation, nil, nil},
}

func hostPath(v *v1.PersistentVolume) {
	v.Spec.CSI, v.Spec.HostPath = nil, &v1.HostPathVolumeSource{Path: handle}
}

func static(v *v1.PersistentVolume) { delete(v.Annotations, storage.AnnDynamicallyProvisioned) }

func attached(s *Snapshot) { s.Attached = []string{name} }

func deletedBefore(s *Snapshot) { s.Deleted = []string{handle} }

func lost(s *Snapshot) {
	s.Claims[0].Spec.VolumeName, s.Claims[0].Status.Phase = "", v1.ClaimLost
}

func TestCalls(t *testing.T) {
	for name, tc := range callCases {
		t.Run(name, tc.run)
	}
}

var (
	crash     = Step{Actor: Provisioner, Kind: Crash}
	byLoops   = Step{Actor: PVController, Kind: Write, Honor: true}
	byOurs    = Step{Actor: Provisioner, Kind: Write, Honor: true, Journaled: true}
	byUser    = Step{Actor: "user", Kind: Write}
	orphan    = []edit{noClaim, noVolume}
	noCall    = []edit{func(s *Snapshot) { s.Calls = nil }}
	unawaited = []edit{calling(false)}
)

var forgottenCases = map[string]stepCase{
	"volume with policy Delete is gone": {[]edit{released, deleting,
		finalizers("kubernetes.io/pv-protection")}, []edit{noVolume}, byLoops, nil, []Rule{Forgotten}},
	"upstream removes the last finalizer": {[]edit{released, deleting,
		finalizers("kubernetes.io/pv-protection")}, []edit{noVolume}, Step{Actor: UpstreamLoops, Kind: Write}, nil,
		[]Rule{Forgotten}},
	"a user removes the last finalizer": {[]edit{released, deleting,
		finalizers("kubernetes.io/pv-protection")}, []edit{noVolume}, byUser, nil, nil},
	"volume is gone after its disk": {[]edit{released, deleting,
		finalizers("kubernetes.io/pv-protection"), noDisk}, []edit{noVolume}, byLoops, nil, nil},
	"Retain volume is gone": {[]edit{released, deleting,
		policy(v1.PersistentVolumeReclaimRetain), finalizers("kubernetes.io/pv-protection")}, []edit{noVolume}, byLoops, nil,
		nil},
	"volume that was never claimed is gone": {[]edit{noClaim, deleting, claimRef(""), phase(v1.VolumeAvailable),
		finalizers("kubernetes.io/pv-protection")}, []edit{noVolume}, byLoops, nil, nil},
	"a user removed the other finalizer before": {[]edit{released, deleting, givenUp,
		finalizers("kubernetes.io/pv-protection")}, []edit{noVolume}, byLoops, nil, nil},
	"a journal entry names the disk": {[]edit{released, deleting, entry(),
		finalizers("kubernetes.io/pv-protection")}, []edit{noVolume}, byLoops, nil, nil},
	"another volume names the disk": {[]edit{released, deleting, otherVolume(),
		finalizers("kubernetes.io/pv-protection")}, []edit{noVolume}, byLoops, nil, nil},
	"provisioner ends in a call without entry": {[]edit{pending, noVolume, calling(true)}, unawaited, crash, nil, []Rule{Forgotten}},
	"provisioner ends in a call with an entry": {[]edit{pending, noVolume, calling(true), entry()}, unawaited, crash, nil, nil},
	"provisioner ends before the disk exists":  {[]edit{unprovisioned, calling(true)}, unawaited, crash, nil, nil},
	"late call creates a disk that nobody awaits": {[]edit{unprovisioned, calling(false)}, made,
		Step{Actor: Provisioner, Kind: CreateVolume, Name: name}, nil, []Rule{Forgotten}},
	"answer arrives, the disk is recorded":    {[]edit{calling(true)}, noCall, byOurs, nil, nil},
	"entry is removed, the disk exists":       {[]edit{pending, noVolume, entry()}, []edit{noEntry}, byOurs, nil, []Rule{Forgotten, EntryRemovedEarly}},
	"entry is removed, the claim is gone":     {append(orphan, entry()), []edit{noEntry}, byOurs, nil, []Rule{Forgotten, EntryRemovedEarly}},
	"entry is removed, a user keeps the disk": {append(orphan, entry(), givenUp), []edit{noEntry}, byOurs, nil, nil},
	"a user removes the entry":                {append(orphan, entry()), []edit{noEntry}, byUser, nil, nil},
	"entry is removed, the call is open":      {[]edit{unprovisioned, entry(), calling(false)}, []edit{noEntry}, byOurs, nil, []Rule{EntryRemovedEarly}},
	"entry is removed after a denial":         {[]edit{unprovisioned, entry()}, []edit{noEntry}, byOurs, nil, nil},
	"entry of a recorded volume is removed":   {[]edit{pending, entry()}, []edit{noEntry}, byOurs, nil, nil},
	"entry is removed, the volume is another claim's": {[]edit{pending, entry(), claimRef("uid-2"),
		volume(func(v *v1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "handle-2" })}, []edit{noEntry}, byOurs, nil,
		[]Rule{Forgotten, EntryRemovedEarly}},
	"entry of a Bound claim is removed":             {[]edit{entry()}, []edit{noEntry}, byOurs, nil, nil},
	"entry is removed after the disk was discarded": {[]edit{unprovisioned, entry(discarding)}, []edit{noEntry}, byOurs, nil, nil},
	"entry is removed before the disk was discarded": {[]edit{pending, noVolume, entry(discarding)}, []edit{noEntry},
		byOurs, nil, []Rule{Forgotten, EntryRemovedEarly}},
	"volume was recorded and is gone since the read": {[]edit{unprovisioned, noClaim, entry(), calling(false)}, []edit{noEntry}, byOurs, []edit{entry()}, nil},
	"discarded disk, a new call of the same name":    {[]edit{unprovisioned, entry(discarding), calling(true)}, []edit{noEntry}, byOurs, nil, nil},
	"entry is moved to the unresolved ones":          {append(orphan, entry()), []edit{noEntry, entry(unresolved)}, byOurs, nil, nil},
	"disk forgotten long ago is not reported again":  {[]edit{entry(), disk("handle-9", "old")}, []edit{noEntry}, byOurs, nil, nil},
	"order of entries changes": {append(orphan, entry(), entry(second)),
		[]edit{func(s *Snapshot) { slices.Reverse(s.Entries) }}, byOurs, nil, nil},
	"one of two entries is removed, its volume exists": {[]edit{entry(), entry(second)}, []edit{noEntry}, byOurs, nil, nil},
}

func second(e *journal.Entry) {
	e.UID, e.Volume = "uid-2", &v1.PersistentVolume{}
	e.Volume.Name = "pvc-uid-2"
}

func TestNoDiskIsForgotten(t *testing.T) {
	for name, tc := range forgottenCases {
		t.Run(name, tc.run)
	}
}

func TestDisksThatUsersKeep(t *testing.T) {
	for name, tc := range map[string]struct {
		given []edit
		want  []string
	}{
		"Retain volume":           {[]edit{policy(v1.PersistentVolumeReclaimRetain)}, []string{handle}},
		"Delete volume":           {nil, nil},
		"disk is gone":            {[]edit{policy(v1.PersistentVolumeReclaimRetain), noDisk}, nil},
		"another volume names it": {[]edit{policy(v1.PersistentVolumeReclaimRetain), otherVolume()}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Kept(bound(tc.given...), bound(append(tc.given, noVolume)...)); !slices.Equal(got, tc.want) {
				t.Errorf("Kept = %v, want %v", got, tc.want)
			}
		})
	}
}
