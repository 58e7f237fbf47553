package runner

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// made returns an object of the name that was made with the UID.
func made(name string, uid types.UID) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid}
}

func TestListKeepsObjectMadeAgain(t *testing.T) {
	s := newSession(newTestRunner(t, nil), nil, deletedAlive(true), time.Time{})
	f := newFeed(s.update, s.set, s.inventory.Remove)
	pod := func(uid types.UID) *v1.Pod {
		p := &v1.Pod{ObjectMeta: made("web-0", uid)}
		p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		return p
	}
	_ = f.Add(pod("1"))
	_ = f.Replace([]any{pod("2")}, "9")
	if steps := s.inventory.Steps(time.Now()); len(steps) != 1 || steps[0].UID != "2" {
		t.Errorf("steps %v, want the new pod", steps)
	}
	_ = f.Replace(nil, "10")
	if steps := s.inventory.Steps(time.Now()); len(steps) != 0 {
		t.Errorf("steps %v after the pod has gone", steps)
	}
}

// The disk of the claim that has gone may exist, whatever has its name now (#21).
func TestListNamesRequestOfClaimMadeAgain(t *testing.T) {
	s := newSession(newTestRunner(t, nil), nil, deletedAlive(true), time.Time{})
	f := newFeed(s.update, s.set, s.inventory.Remove)
	claim := func(uid types.UID) *v1.PersistentVolumeClaim {
		c := &v1.PersistentVolumeClaim{ObjectMeta: made("data", uid)}
		c.Annotations = map[string]string{"volume.kubernetes.io/storage-provisioner": "ebs"}
		c.Status.Phase = v1.ClaimPending
		return c
	}
	_ = f.Add(claim("1"))
	_ = f.Replace([]any{claim("2")}, "9")
	fates := map[string]teardown.Fate{}
	for _, item := range s.inventory.Items(time.Now()) {
		fates[item.Object.UID] = item.Fate
	}
	if fates["1"] != teardown.Unknown || fates["2"] != teardown.Planned {
		t.Errorf("fates %v, want 1 Unknown and 2 Planned", fates)
	}
}
