package provisioning

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// oldPlugin is an in-tree plugin that the driver replaces.
const oldPlugin = "kubernetes.io/old"

// twisted is a plugin whose volumes, in terms of the driver, have handles that the
// driver never gave them: those of GCE, vSphere and AzureFile are such.
type twisted struct{ plugin }

func (twisted) Class(_ context.Context, class *storagev1.StorageClass) (*storagev1.StorageClass, error) {
	class = class.DeepCopy()
	class.Provisioner = csimock.DefaultName
	return class, nil
}

func (twisted) InTree(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	volume = volume.DeepCopy()
	volume.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: volume.Spec.CSI.VolumeHandle}}
	return volume, nil
}

func (t twisted) Volume(volume *v1.PersistentVolume) (*v1.PersistentVolume, error) {
	volume, err := t.plugin.Volume(volume)
	if err == nil {
		volume.Spec.CSI.Driver, volume.Spec.CSI.VolumeHandle = csimock.DefaultName, "unspecified/"+volume.Spec.CSI.VolumeHandle
	}
	return volume, err
}

// newMigrated is a flow for a claim of a class of the plugin.
func newMigrated(t *testing.T) *flow {
	t.Helper()
	f := newFlow(t)
	f.translator = twisted{}
	claim := f.now().DeepCopy()
	claim.Annotations = map[string]string{binding.StorageProvisioner: oldPlugin, binding.MigratedTo: csimock.DefaultName}
	_, err := f.client.CoreV1().PersistentVolumeClaims("ns").Update(t.Context(), claim, metav1.UpdateOptions{})
	f.must(err)
	class, err := f.client.StorageV1().StorageClasses().Get(t.Context(), "class", metav1.GetOptions{})
	f.must(err)
	f.must(f.client.StorageV1().StorageClasses().Delete(t.Context(), "class", metav1.DeleteOptions{}))
	class.Provisioner = oldPlugin
	_, err = f.client.StorageV1().StorageClasses().Create(t.Context(), class, metav1.CreateOptions{})
	f.must(err)
	f.restart()
	return f
}

func TestAVolumeOfAPluginIsTheClaimsThoughItsHandleIsSpelledOtherwise(t *testing.T) {
	for name, late := range map[string]bool{"seen by the cache": false, "read, for the cache is late": true} {
		t.Run(name, func(t *testing.T) {
			f := newMigrated(t)
			f.fail("create", "persistentvolumes", true)
			f.step(true)
			if late {
				f.must(f.Volumes.GetStore().Replace(nil, ""))
			}
			f.step(false)
			f.expect(1, 1, 1, true)
			for _, event := range f.told() {
				if strings.Contains(event, provisioningCleanupFailed) {
					t.Errorf("its own volume is taken for another's: %s", event)
				}
			}
			f.remove()
			f.step(false)
			f.expect(1, 1, 1, false)
			volume, err := f.client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid", metav1.GetOptions{})
			f.must(err)
			f.volumeChanged(nil, volume)
			if len(f.memory.handles) > 0 {
				t.Errorf("the handles %v stay reserved", f.memory.handles)
			}
		})
	}
}

func TestAVolumeOfAPluginThatNobodyRecordsIsDeletedByTheNameThatTheDriverGaveIt(t *testing.T) {
	f := newMigrated(t)
	f.fail("create", "persistentvolumes", false)
	f.step(true)
	f.remove()
	f.step(false)
	f.expect(0, 0, 1, false)
}

func TestADiskThatAnotherVolumeNamesIsNotDeletedInWhicheverTermsThatIsWritten(t *testing.T) {
	for name, source := range map[string]func(handle string) v1.PersistentVolumeSource{
		"those of the plugin": func(handle string) v1.PersistentVolumeSource {
			return v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: handle}}
		},
		"those of the driver": func(handle string) v1.PersistentVolumeSource {
			return v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: csimock.DefaultName, VolumeHandle: handle}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newMigrated(t)
			f.fail("create", "persistentvolumes", false)
			f.step(true)
			other := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}}
			other.Spec.PersistentVolumeSource = source(f.mock.Volumes()[0].ID)
			f.must(f.Volumes.GetStore().Add(other))
			f.remove()
			f.step(false)
			f.expect(1, 0, 1, false)
		})
	}
}

func TestAVolumeThatTheClaimNamesByNowIsLookedAtBeforeItsDiskIsDeleted(t *testing.T) {
	f := newFlow(t)
	f.fail("create", "persistentvolumes", false)
	f.step(true)
	byHand := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "by-hand"},
		Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{
			CSI: &v1.CSIPersistentVolumeSource{Driver: csimock.DefaultName, VolumeHandle: f.mock.Volumes()[0].ID}}},
	}
	_, err := f.client.CoreV1().PersistentVolumes().Create(t.Context(), byHand, metav1.CreateOptions{})
	f.must(err)
	claim := f.now().DeepCopy()
	claim.Spec.VolumeName = "by-hand"
	_, err = f.client.CoreV1().PersistentVolumeClaims("ns").Update(t.Context(), claim, metav1.UpdateOptions{})
	f.must(err)
	f.must(f.Volumes.GetStore().Replace(nil, "")) // the watch is late
	f.step(false)
	f.expect(1, 1, 1, false)
}

func TestAnOldVolumeGivenToTheClaimSaysNothingOfTheOneThatIsBeingMade(t *testing.T) {
	f := newFlow(t)
	f.must(f.mock.Inject(csimock.Fault{Method: "CreateVolume", Code: 4, After: true, Times: 1})) // DeadlineExceeded
	f.step(true)
	old := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-before", Annotations: map[string]string{binding.ProvisionedBy: csimock.DefaultName, binding.HoldsClaims: "before"}},
		Spec: v1.PersistentVolumeSpec{
			ClaimRef:               &v1.ObjectReference{Namespace: "ns", Name: "claim", UID: "uid"},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: csimock.DefaultName, VolumeHandle: "before"}},
		},
	}
	f.must(f.Volumes.GetStore().Add(old))
	claim := f.now().DeepCopy()
	claim.Spec.VolumeName = old.Name
	_, err := f.client.CoreV1().PersistentVolumeClaims("ns").Update(t.Context(), claim, metav1.UpdateOptions{})
	f.must(err)
	f.step(false)
	f.expect(0, 0, 2, false)
}

func TestAProcessThatCouldNotHoldAClaimDoesNotThinkThatNobodyAsked(t *testing.T) {
	f := newFlow(t)
	f.must(f.mock.Inject(csimock.Fault{Method: "CreateVolume", Code: 4, After: true, Times: 1})) // DeadlineExceeded
	late := f.now().DeepCopy()
	f.step(true) // by the process before
	f.restart()
	f.must(f.Claims.GetStore().Update(late)) // from before the hold
	f.fail("patch", "persistentvolumeclaims", false)
	if err := f.Reconcile(context.Background(), flowClaim); err == nil {
		t.Error("the claim was held")
	}
	f.remove()
	f.step(false)
	f.expect(0, 0, 2, false)
}

func TestAClaimGoesThoughItsClassWentBeforeIt(t *testing.T) {
	f := newFlow(t)
	f.must(f.mock.Inject(csimock.Fault{Method: "CreateVolume", Code: 13})) // Internal
	for range 3 {
		f.step(true)
	}
	f.must(f.Classes.GetStore().Replace(nil, ""))
	f.remove()
	f.step(false) // to be told again, soon
	f.expect(0, 0, 4, true)
	f.step(false)
	f.expect(0, 0, 5, false)
	for _, event := range f.told() {
		if strings.Contains(event, provisioningUnresolved) {
			t.Errorf("a driver that has told is accused: %s", event)
		}
	}
}

func TestARequestThatTheDriverRefusesWaitsUntilSomethingChanges(t *testing.T) {
	f := newFlow(t)
	f.must(f.mock.Inject(csimock.Fault{Method: "CreateVolume", Code: 3, Times: 1})) // InvalidArgument
	f.step(false)
	f.expect(0, 0, 1, true)
	if told := strings.Join(f.told(), "\n"); !strings.Contains(told, "not tried again for 1s") {
		t.Errorf("nobody tells how long it waits:\n%s", told)
	}
	changed := f.now().DeepCopy()
	changed.Annotations["team"] = "storage"
	if !f.concerns(f.now(), changed) {
		t.Error("an annotation of the claim does not have it tried again")
	}
	f.step(false)
	f.expect(1, 1, 2, true)
}

func TestARequestThatTheDriverRefusedIsMadeForAnotherNodeAtOnce(t *testing.T) {
	f := newFlow(t)
	f.must(f.mock.Inject(csimock.Fault{Method: "CreateVolume", Code: 4, Times: 1}, csimock.Fault{Method: "CreateVolume", Code: 3, Times: 1})) // DeadlineExceeded, InvalidArgument
	f.step(true)
	claim := f.now().DeepCopy()
	claim.Annotations[binding.SelectedNode] = "another"
	_, err := f.client.CoreV1().PersistentVolumeClaims("ns").Update(t.Context(), claim, metav1.UpdateOptions{})
	f.must(err)
	f.step(true) // which is tried again soon
	if told := strings.Join(f.told(), "\n"); strings.Contains(told, "not tried again") {
		t.Errorf("the claim waits:\n%s", told)
	}
}

func TestItsOwnVolumeIsNoReasonToRefuseAHandle(t *testing.T) {
	f := newFlow(t)
	own := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-uid"},
		Spec:       v1.PersistentVolumeSpec{PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: csimock.DefaultName, VolumeHandle: "h"}}},
	}
	f.must(f.Volumes.GetStore().Add(own))
	o := &observation{claim: f.now(), name: "pvc-uid"}
	if err := f.impossible(answer{handle: "h", volume: own}, o); err != nil {
		t.Error(err)
	}
	other := own.DeepCopy()
	other.Name = "another"
	f.must(f.Volumes.GetStore().Add(other))
	if err := f.impossible(answer{handle: "h", volume: own}, o); err == nil {
		t.Error("the handle of another volume is taken")
	}
}

// A hold that nobody can have acted upon before this process: it came by the watch,
// in the version that is seen, after the process had begun.
func TestOnlyAHoldThatWasSeenToComeProvesThatNobodyAsked(t *testing.T) {
	f := newFlow(t)
	for name, tc := range map[string]struct {
		before, held, idle bool // whether the claim was known, and held; and whether the process has not begun
		version            string
		listed, told       bool
		want               bool
	}{
		"new to the cache":            {version: "11", want: true},
		"known, and not held before":  {before: true, version: "11", want: true},
		"known, and held before":      {before: true, held: true, version: "11"},
		"from before the process":     {version: "10"},
		"brought by a list":           {version: "11", listed: true},
		"seen while standing by":      {version: "11", idle: true},
		"of which something is known": {version: "11", told: true},
	} {
		t.Run(name, func(t *testing.T) {
			started := "10"
			f.started.Store(&started)
			if tc.idle {
				f.started.Store(nil)
			}
			f.Streamed = func(string) bool { return !tc.listed }
			claim := f.now().DeepCopy()
			claim.UID, claim.ResourceVersion = types.UID(name), tc.version
			var old *v1.PersistentVolumeClaim
			if tc.before {
				old = claim.DeepCopy()
			}
			claim.Finalizers = finalizer.With(claim.Finalizers, finalizer.Provisioning)
			if tc.held {
				old.Finalizers = claim.Finalizers
			}
			if tc.told {
				f.memory.note(subject{uid: claim.UID}, "volume", func(e *entry) { e.tell(provision.Pending) })
			}
			if got := f.unasked(old, claim); got != tc.want {
				t.Errorf("proven: %v, want %v", got, tc.want)
			}
		})
	}
}
