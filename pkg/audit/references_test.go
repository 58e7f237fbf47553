package audit

import (
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/audit/verdict"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

const referenceDriver = "d.example.com"

// decide returns the verdict on a volume that a complete driver lists twice.
func decide(refs *references, volume Volume) verdict.Verdict {
	s := &survey{refs: refs, enumerated: true, first: firstList{sources: set{}}, second: secondList{sources: set{}}}
	return verdict.Decide(s.state(volume, true))
}

// leaseOf returns the journal of the driver with one entry.
func leaseOf(t *testing.T, kind journal.Kind, change func(*journal.Entry)) *coordinationv1.Lease {
	t.Helper()
	entry := journal.Entry{
		UID: "0a1b2c3d-0000-4000-8000-000000000001", Namespace: "default", Name: "claim",
		Request: journal.Request{CreateVolumeRequest: &spec.CreateVolumeRequest{Name: "pvc-0a1b2c3d-0000-4000-8000-000000000001"}},
		Volume:  &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-0a1b2c3d-0000-4000-8000-000000000001"}},
	}
	change(&entry)
	text, err := journal.Encode(entry)
	if err != nil {
		t.Fatal(err)
	}
	return journal.Journal{Namespace: "exeunt-system", Driver: referenceDriver}.Lease(kind, 0, "p",
		journal.Custody{Written: 1}, map[types.UID]string{entry.UID: text})
}

// TestHandleInEntryIsItsOwnReason gives an entry the handle of the volume: the handle is not
// another spelling.
func TestHandleInEntryIsItsOwnReason(t *testing.T) {
	for kind, want := range map[journal.Kind]verdict.Reason{journal.KindActive: verdict.CreationInFlight,
		journal.KindUnresolved: verdict.Unresolved} {
		refs := newReferences(referenceDriver)
		_ = refs.addLease(leaseOf(t, kind, func(e *journal.Entry) { e.State, e.Handle = journal.Discarding, "zone-a/vol-1" }))
		if got := decide(refs, Volume{Handle: "zone-a/vol-1", Name: "vol-1"}); got.Reason != want {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
		if got := decide(refs, Volume{Handle: "zone-b/vol-1", Name: "vol-1"}); got.Reason != verdict.HandleAlike {
			t.Errorf("%s, other zone: %v", kind, got)
		}
	}
}

func TestUntranslatableVolumeOfAnotherDriver(t *testing.T) {
	azure := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{
		AzureFile: &v1.AzureFilePersistentVolumeSource{ShareName: "share", SecretName: "secret"}, // has no namespace
	}}}
	if _, err := newReferences("file.csi.azure.com").addVolume(azure); err == nil {
		t.Error("a volume of the audited driver was not translated, and nothing was said")
	}
	refs := newReferences(referenceDriver)
	if _, err := refs.addVolume(azure); err != nil {
		t.Errorf("a volume of another driver makes the audit incomplete: %v", err)
	}
	if got := decide(refs, Volume{Handle: "group#account#x/share", Name: "x"}); got.Reason != verdict.HandleAlike {
		t.Errorf("volume of the same share: %v", got)
	}
}

func TestUnreadableEntryIsTold(t *testing.T) {
	lease := leaseOf(t, journal.KindActive, func(*journal.Entry) {})
	for key := range journal.Encoded(lease) {
		lease.Annotations[journal.EntryPrefix+string(key)] = "broken"
	}
	r := reading{Cluster: &Cluster{Name: "c"}, refs: newReferences(referenceDriver)}
	r.addLease(lease)
	if got := strings.Join(r.refs.incomplete, "\n"); !strings.Contains(got, "exeunt-system/"+lease.Name) ||
		!strings.Contains(got, "cluster c") {
		t.Errorf("incomplete: %q", got)
	}
	if got := decide(r.refs, Volume{Handle: "vol-1", Name: "vol-1"}); got != (verdict.Verdict{Class: verdict.Doubtful,
		Reason: verdict.Unresolved}) {
		t.Errorf("verdict: %v", got)
	}
}

// TestAttachmentOfAnUnknownVolume attaches a PersistentVolume that no longer exists. The name
// of an object that nobody provisioned tells nothing of its volume.
func TestAttachmentOfAnUnknownVolume(t *testing.T) {
	const provisioned = "pvc-0a1b2c3d-0000-4000-8000-000000000001"
	for name, tc := range map[string]struct {
		attached string
		volume   Volume
		listed   []string
		want     verdict.Reason
	}{
		"name is not listed":               {"data", Volume{Handle: "vol-1", Name: "disk"}, nil, verdict.Attached},
		"name is that of another volume":   {"data", Volume{Handle: "vol-1", Name: "disk"}, []string{"data"}, verdict.NoReason},
		"name is that of the volume":       {"data", Volume{Handle: "vol-1", Name: "data"}, []string{"data"}, verdict.Attached},
		"provisioned name is not listed":   {provisioned, Volume{Handle: "vol-1", Name: "disk"}, nil, verdict.NoReason},
		"volumes without names":            {provisioned, Volume{Handle: "vol-1"}, nil, verdict.Attached},
		"attachment of a recorded volume":  {"", Volume{Handle: "vol-1", Name: "disk"}, nil, verdict.NoReason},
		"attachment of the other attacher": {"other", Volume{Handle: "vol-1", Name: "disk"}, nil, verdict.NoReason},
	} {
		t.Run(name, func(t *testing.T) {
			refs := newReferences(referenceDriver)
			r := reading{Cluster: &Cluster{}, refs: refs, attached: map[uint64]bool{}}
			attachment := &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{Attacher: referenceDriver,
				Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &tc.attached}}}
			if tc.attached == "other" {
				attachment.Spec.Attacher = "other.example.com"
			}
			if err := refs.addAttachment(attachment, r.attached); err != nil {
				t.Fatal(err)
			}
			if tc.attached == "" {
				delete(r.attached, hash(""))
			}
			r.addUnknown()
			s := &survey{refs: refs, enumerated: true, first: firstList{sources: set{}}, second: secondList{sources: set{}}}
			for _, listed := range tc.listed {
				s.second.volumes = append(s.second.volumes, Volume{Handle: "listed-" + listed, Name: listed})
			}
			s.findAttached()
			if got := verdict.Decide(s.state(tc.volume, true)); got.Reason != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// TestLostClaimKeepsItsVolume reads a bound claim without a PersistentVolume: a volume without
// a name may be that of the claim.
func TestLostClaimKeepsItsVolume(t *testing.T) {
	const uid = "0a1b2c3d-0000-4000-8000-000000000001"
	for name, tc := range map[string]struct {
		provisioner string
		recorded    types.UID
		want        verdict.Reason
	}{
		"lost claim":                  {referenceDriver, "", verdict.CreationInFlight},
		"volume of another claim":     {referenceDriver, "0a1b2c3d-0000-4000-8000-000000000002", verdict.CreationInFlight},
		"lost claim of no one":        {"", "", verdict.CreationInFlight},
		"bound claim":                 {referenceDriver, uid, verdict.NoReason},
		"lost claim of other drivers": {"other.example.com", "", verdict.NoReason},
	} {
		t.Run(name, func(t *testing.T) {
			r := reading{Cluster: &Cluster{}, refs: newReferences(referenceDriver), bound: set{}}
			claim := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid,
				Annotations: map[string]string{storage.AnnBindCompleted: "yes"}}}
			if tc.provisioner != "" {
				claim.Annotations[storage.AnnStorageProvisioner] = tc.provisioner
			}
			r.refs.addClaim(claim, r.bound)
			if tc.recorded != "" {
				r.serves(&v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{UID: tc.recorded}}})
			}
			r.addUnknown()
			if got := decide(r.refs, Volume{Handle: "vol-1"}); got.Reason != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
