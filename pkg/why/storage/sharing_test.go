package storage

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/blocker/volume"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// onDisk returns the reclaim of a volume whose disk other has as well.
func onDisk(server volume.Server, other corev1.PersistentVolume) *reclaimed {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	return &reclaimed{
		volumeChain: &volumeChain{subject: subject[corev1.PersistentVolume]{commandsOnly{}, &unstructured.Unstructured{}, v}},
		state:       volume.ReclaimState{Server: server, Shared: volume.Yes}, sharing: []corev1.PersistentVolume{other},
	}
}

func newOther(phase corev1.PersistentVolumePhase, policy corev1.PersistentVolumeReclaimPolicy) corev1.PersistentVolume {
	return corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec:       corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: policy},
		Status:     corev1.PersistentVolumeStatus{Phase: phase},
	}
}

// Retain on the one volume ends the protection of the disk if the other volume is to be reclaimed, too.
func TestSharedDiskIsGivenUpOnlyIfTheOtherVolumeKeepsIt(t *testing.T) {
	const retain, deletes = corev1.PersistentVolumeReclaimRetain, corev1.PersistentVolumeReclaimDelete
	for name, tc := range map[string]struct {
		other  corev1.PersistentVolume
		pasted bool
	}{
		"bound, Delete":     {newOther(corev1.VolumeBound, deletes), true},
		"released, Retain":  {newOther(corev1.VolumeReleased, retain), true},
		"released, Delete":  {newOther(corev1.VolumeReleased, deletes), false},
		"failed, Delete":    {newOther(corev1.VolumeFailed, deletes), false},
		"available, Delete": {newOther(corev1.VolumeAvailable, deletes), false},
	} {
		for _, judgment := range []volume.Judgment{{Reason: blocker.HandleShared}, {Reason: blocker.DriverDeletes},
			{Reason: blocker.DriverRefuses}} {
			t.Run(name+", "+judgment.Reason.String(), func(t *testing.T) {
				found := onDisk(volume.ServerOther, tc.other).blockerOf(judgment)
				lines := strings.Split(found.Next, "\n")
				if got := slices.ContainsFunc(lines,
					func(line string) bool { return strings.HasPrefix(line, "kubectl patch ") }); got != tc.pasted {
					t.Errorf("pasted, the next step patches: %v, want %v:\n%s", got, tc.pasted, found.Next)
				}
				if strings.Contains(found.Next, "first set Retain on b") == tc.pasted ||
					!slices.Contains(lines, "kubectl get pv a b") {
					t.Errorf("the next step is:\n%s", found.Next)
				}
			})
		}
	}
}

func TestEvidenceSaysWhatOtherProvisionersDoNotCheck(t *testing.T) {
	for server, want := range map[volume.Server]bool{volume.ServerOurs: false, volume.ServerOther: true,
		volume.ServerUnseen: true, volume.ServerGone: true} {
		for _, reason := range []blocker.Reason{blocker.HandleShared, blocker.DriverDeletes} {
			r := onDisk(server, newOther(corev1.VolumeReleased, corev1.PersistentVolumeReclaimDelete))
			r.state.Secret, r.secret = volume.SecretMissing, secretRef{"kube-system", "credentials"}
			text := ""
			for _, one := range append(r.blockerOf(volume.Judgment{Reason: reason}).Evidence, r.unchecked(reason)...) {
				text += one.Text + "\n"
			}
			for _, sentence := range []string{
				"csi-provisioner does not check this: the data of PersistentVolume b is deleted, too\n",
				"secret kube-system/credentials, which the annotations of the volume name, does not exist\n",
				"csi-provisioner does not check this: the driver is called without the secret\n",
			} {
				if strings.Contains(text, sentence) != want {
					t.Errorf("server %v, %v: evidence has %q: %v, want %v:\n%s", server, reason, sentence, !want, want, text)
				}
			}
			if sharing := strings.Count(text, "PersistentVolume b (phase Released, policy Delete) has the same disk\n"); want &&
				sharing != 1 {
				t.Errorf("server %v, %v: the other volume is named %d times:\n%s", server, reason, sharing, text)
			}
		}
	}
}

func TestReclaimKnowsWhoServes(t *testing.T) {
	for holderIdentity, want := range map[string]volume.Server{"pod_uid_exeunt": volume.ServerOurs,
		"pod-0": volume.ServerOther} {
		lease := coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "csi-example-com"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holderIdentity, LeaseDurationSeconds: ptr.To[int32](60),
				RenewTime: &metav1.MicroTime{Time: time.Now()}},
		}
		reader := clustertest.NewReader(t, func(w http.ResponseWriter, request *http.Request) {
			version := metav1.ListMeta{ResourceVersion: "7"}
			var list any = corev1.PersistentVolumeList{ListMeta: version}
			if strings.HasSuffix(request.URL.Path, "/leases") {
				list = coordinationv1.LeaseList{ListMeta: version, Items: []coordinationv1.Lease{lease}}
			}
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(list); err != nil {
				t.Error(err)
			}
		})
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		r := &reclaimed{
			volumeChain: &volumeChain{subject: subject[corev1.PersistentVolume]{readerOnly{reader: reader},
				&unstructured.Unstructured{}, v}, driver: "csi.example.com"},
			finding: holder.Finding{State: blocker.ControllerState{Workload: blocker.WorkloadReady,
				Lease: blocker.LeaseHeld}},
		}
		r.observe(t.Context())
		if r.state.Server != want || len(r.served) != 1 {
			t.Errorf("the Lease of %s is held: server %v, %v, want %v", holderIdentity, r.state.Server, r.served, want)
		}
	}
}
