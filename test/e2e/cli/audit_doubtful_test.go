package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// groupContents are the definition and an object of the group snapshot API.
const groupContent = `{"apiVersion":"groupsnapshot.storage.k8s.io/v1beta2","kind":"VolumeGroupSnapshotContent","metadata":{"name":"NAME"},
"spec":{"deletionPolicy":"Retain","driver":"d","source":{"volumeHandles":["HANDLE"]},"volumeGroupSnapshotRef":{"name":"n","namespace":"n"}}}`

const snapshotContent = `{"apiVersion":"snapshot.storage.k8s.io/v1","kind":"VolumeSnapshotContent","metadata":{"name":"NAME"},
"spec":{"deletionPolicy":"Retain","driver":"DRIVER","source":{SOURCE},"volumeSnapshotRef":{"name":"n","namespace":"n"}}}`

// installGroupSnapshots installs the group snapshot API.
func installGroupSnapshots(s *harness.Session) {
	s.T.Helper()
	dir, err := exec.CommandContext(s.Ctx, "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/kubernetes-csi/external-snapshotter/client/v8").Output()
	s.Must(err, "find the snapshot API")
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "config", "crd",
		"groupsnapshot.storage.k8s.io_volumegroupsnapshotcontents.yaml"))
	s.Must(err, "read the group snapshot API")
	s.Must(sandbox.ApplyYAML(s.Ctx, s.Plane.RESTConfig(), text), "install the group snapshot API")
	s.Until("group snapshots are served", func() bool {
		_, err := s.Client.Discovery().ServerResourcesForGroupVersion("groupsnapshot.storage.k8s.io/v1beta2")
		return err == nil && s.Client.Discovery().RESTClient().Get().
			AbsPath("/apis/groupsnapshot.storage.k8s.io/v1beta2/volumegroupsnapshotcontents").Do(s.Ctx).Error() == nil
	})
}

func apply(s *harness.Session, text string, pairs ...string) {
	s.T.Helper()
	s.Must(sandbox.ApplyYAML(s.Ctx, s.Plane.RESTConfig(), []byte(strings.NewReplacer(pairs...).Replace(text))),
		"create object")
}

// attach creates a VolumeAttachment with the source.
func attach(s *harness.Session, name string, source storagev1.VolumeAttachmentSource) {
	s.T.Helper()
	attachment := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-" + name},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: s.Driver.DriverName, NodeName: "node", Source: source},
	}
	_, err := s.Client.StorageV1().VolumeAttachments().Create(s.Ctx, attachment, metav1.CreateOptions{})
	s.Must(err, "create VolumeAttachment")
}

// writeJournal writes a Lease with an entry for the claim.
func writeJournal(s *harness.Session, kind journal.Kind, claim types.UID) (volume string) {
	s.T.Helper()
	volume = "pvc-" + string(claim)
	entry := journal.Entry{
		UID: claim, Namespace: "default", Name: "claim",
		Request: journal.Request{CreateVolumeRequest: &spec.CreateVolumeRequest{Name: volume}},
		Volume:  &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}},
	}
	text, err := journal.Encode(entry)
	s.Must(err, "encode entry")
	j := journal.Journal{Namespace: deploy.Namespace, Driver: s.Driver.DriverName}
	lease := j.Lease(kind, 0, "nobody", journal.Custody{Written: 1}, map[types.UID]string{claim: text})
	_, err = s.Client.CoordinationV1().Leases(j.Namespace).Create(s.Ctx, lease, metav1.CreateOptions{})
	s.Must(err, "write journal")
	return volume
}

// reference creates a volume for each reason to doubt, with what refers to it. It returns the
// reasons by handle, and the handle of a clone, which is an orphan.
func reference(s *harness.Session) (want map[string]string, clone string) {
	s.T.Helper()
	want = map[string]string{}
	doubtful := func(reason, name string) string {
		handle := store(s, name, "")
		want[handle] = reason
		return handle
	}
	_, err := s.StorageClient().ControllerPublishVolume(s.Ctx, &spec.ControllerPublishVolumeRequest{
		VolumeId: doubtful("Attached", "published"), NodeId: "csimock-node", VolumeCapability: mount,
	})
	s.Must(err, "publish volume")
	inline := s.NewVolume("x", v1.PersistentVolumeReclaimRetain).Spec
	inline.Capacity, inline.StorageClassName, inline.PersistentVolumeReclaimPolicy = nil, "", ""
	inline.CSI.VolumeHandle = doubtful("Attached", "attached-inline")
	attach(s, "inline", storagev1.VolumeAttachmentSource{InlineVolumeSpec: &inline})
	name := "attached-without-record"
	doubtful("Attached", name)
	attach(s, "record", storagev1.VolumeAttachmentSource{PersistentVolumeName: &name})
	apply(s, snapshotContent, "NAME", s.Namespace+"-taken", "DRIVER", "other.example.com", "SOURCE",
		`"volumeHandle":"`+doubtful("SnapshotSource", "snapshot")+`"`)
	imported, err := s.StorageClient().CreateSnapshot(s.Ctx, &spec.CreateSnapshotRequest{Name: "imported",
		SourceVolumeId: doubtful("SnapshotSource", "imported")})
	s.Must(err, "take snapshot")
	apply(s, snapshotContent, "NAME", s.Namespace+"-imported", "DRIVER", s.Driver.DriverName, "SOURCE",
		`"snapshotHandle":"`+imported.GetSnapshot().GetSnapshotId()+`"`)
	apply(s, groupContent, "NAME", s.Namespace+"-group", "HANDLE", doubtful("SnapshotSource", "group"))
	clone = store(s, "clone", doubtful("CloneSource", "source"))
	record(s, "alike", "zones/a/"+strings.ToUpper(doubtful("HandleAlike", "alike")))
	doubtful("CreationInFlight", "pvc-"+string(s.CreateClaim("pending", "none").UID))
	doubtful("CreationInFlight", writeJournal(s, journal.KindActive, "0a1b2c3d-0000-4000-8000-000000000001"))
	doubtful("Unresolved", writeJournal(s, journal.KindUnresolved, "0a1b2c3d-0000-4000-8000-000000000002"))
	return want, clone
}

func TestReferencedVolumesAreDoubtful(t *testing.T) {
	shared := join(t)
	shared.SnapshotClient()
	installGroupSnapshots(shared)
	s := withDriver(shared, "--with=publish")
	want, clone := reference(s)
	record(s, "other", store(s, "other", ""))
	planted := store(s, "planted", "")

	found := audit(s)
	if diff := cmp.Diff(want, found.reasons()); diff != "" || !found.Enumerated || len(found.Incomplete) > 0 {
		t.Errorf("incomplete %q, doubtful (-want +got):\n%s", found.Incomplete, diff)
	}
	if orphans := found.orphans(); !slices.Equal(orphans, []string{clone, planted}) {
		t.Errorf("orphans %q, want %s and %s", orphans, clone, planted)
	}
	expectNoDeletion(s)
}

func TestVolumesOfAFile(t *testing.T) {
	s := join(t)
	disk := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-gce"},
		Spec: s.NewVolume("x", v1.PersistentVolumeReclaimRetain).Spec}
	disk.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "in-tree"}}
	_, err := s.Client.CoreV1().PersistentVolumes().Create(s.Ctx, disk, metav1.CreateOptions{})
	s.Must(err, "create PersistentVolume")
	_, err = s.Client.CoreV1().Pods(s.Namespace).Create(s.Ctx, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "inline"},
		Spec: v1.PodSpec{
			Containers: []v1.Container{{Name: "c", Image: "i"}},
			Volumes: []v1.Volume{{Name: "data",
				VolumeSource: v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "inline"}}}},
		},
	}, metav1.CreateOptions{})
	s.Must(err, "create pod")
	kubelet := "csi-" + strings.Repeat("0123456789abcdef", 4)
	const prefix = "projects/p/zones/z/disks/"
	list, err := json.Marshal([]map[string]any{
		{"handle": prefix + "planted", "name": "data", "age": "5d", "size": "10Gi"}, {"handle": prefix + "in-tree"},
		{"handle": kubelet}, {"handle": prefix + "attached", "nodes": []string{"n"}},
		{"handle": "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/inline"},
	})
	s.Must(err, "encode volumes")
	file := filepath.Join(t.TempDir(), "disks.json")
	s.Must(os.WriteFile(file, list, 0o600), "write volumes")

	args := []string{"--volumes=" + file, "--driver=pd.csi.storage.gke.io", "--kubeconfig=" + s.Plane.AdminKubeconfig,
		"--settle=0s", "-o=json"}
	found := decodeAudit(s, runAudit(s, args...))
	if len(found.Orphans) != 1 || found.Orphans[0].Handle != prefix+"planted" || found.Orphans[0].Age != "5d" ||
		found.Orphans[0].Size != "10Gi" || found.Orphans[0].Name != "data" {
		t.Errorf("orphans: %+v", found.Orphans)
	}
	got := found.reasons()
	for handle, reason := range map[string]string{prefix + "in-tree": "HandleAlike", kubelet: "InlineVolume", prefix + "attached": "Attached", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/inline": "InlineVolume"} {
		if got[handle] != reason {
			t.Errorf("%s: %q, want %q", handle, got[handle], reason)
		}
	}
	s.Must(os.WriteFile(file, list[:len(list)-5], 0o600), "truncate volumes")
	if done := runAudit(s, args...); done.status != 1 || !strings.Contains(done.errors, "truncated") || strings.Count(done.errors, "\n") != 1 {
		t.Errorf("truncated file: exit code %d, %s", done.status, done.errors)
	}
}
