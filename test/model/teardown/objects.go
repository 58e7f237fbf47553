package teardown

import (
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/fate"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// began is when the runner begins to look.
var began = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

const driver = "csi.example.com"

// facts is the part of the API that the inventory is filled from.
type facts struct {
	sets        [2]Set
	service     Service
	participant bool
	// gone are the claims that a runner saw go while a volume was requested.
	gone [2]bool
	// lowest: the second claim is in an infrastructure namespace.
	lowest bool
	// static and shared are those of the world.
	static, shared bool
}

func factsOf(w World, a API, gone [2]bool) facts {
	f := facts{sets: a.Sets, service: a.Service, participant: a.Alive.Participant, gone: gone, lowest: w.Lowest && !w.Flat,
		static: w.Static, shared: w.Shared}
	f.service.Balancer, f.service.Must = false, false
	for i := range f.sets { // what no object shows
		f.sets[i].Disk, f.sets[i].Must, f.sets[i].Recorded, f.sets[i].Call = false, false, false, NoCall
	}
	return f
}

// judgement is what the inventory says of the facts.
type judgement struct {
	steps    []inventory.Step
	unmarked int
	work     teardown.Work
}

var (
	judged   = map[facts]judgement{}
	judgedMu sync.Mutex
)

// judge fills an inventory with the API objects, and asks it.
func (w World) judge(a API, gone [2]bool) judgement {
	f := factsOf(w, a, gone)
	judgedMu.Lock()
	defer judgedMu.Unlock()
	if j, known := judged[f]; known {
		return j
	}
	i, now := f.inventory()
	j := judgement{i.Steps(now), i.Unmarked(now), i.Work(now)}
	judged[f] = j
	return j
}

func (f facts) inventory() (i *inventory.Inventory, now time.Time) {
	i, now = inventory.New(inventory.Options{}), began
	var unknown []teardown.Item
	slow := false
	for n, s := range f.sets {
		for _, object := range f.objects(n) {
			i.Set(object)
		}
		slow = slow || s.Slow
		if s.Unknown || f.gone[n] {
			unknown = append(unknown, teardown.Item{Fate: teardown.Unknown, Object: teardown.Object{
				Kind: "PersistentVolumeClaim", UID: string(claimUID(n, false))}})
		}
	}
	if f.service.Exists {
		i.Set(f.service.object())
	}
	i.Restore(unknown)
	if f.participant {
		i.SetParticipants([]inventory.Participant{{Finalizer: "example.com/buckets", Namespace: "buckets"}})
	}
	if i.Work(now); slow {
		now = now.Add(3 * time.Minute)
	}
	return i, now
}

// live judges the PersistentVolume of the set that was read live.
func (w World) live(a API, n int) fate.Action {
	if !a.Sets[n].Volume.Exists {
		return fate.Keep
	}
	f := factsOf(w, a, [2]bool{})
	i, _ := f.inventory()
	return i.Live(f.volume(n)).Action
}

func (f facts) objects(n int) (all []any) {
	s := f.sets[n]
	if s.Volume.Exists {
		all = append(all, f.volume(n))
	}
	if s.Claim.Phase != NoClaim {
		all = append(all, f.claim(n))
	}
	if s.Pod.Exists {
		all = append(all, f.pod(n))
	}
	return all
}

func (f facts) namespace(n int) string {
	if n == 1 && f.lowest {
		return metav1.NamespaceSystem
	}
	return "apps"
}

func claimUID(n int, again bool) types.UID { return types.UID(fmt.Sprintf("claim-%d-%t", n, again)) }

// nameOfVolume is what a provisioner calls the volume of a claim.
func nameOfVolume(n int, again bool) string { return "pvc-" + string(claimUID(n, again)) }

func named(namespace, kind string, n int) metav1.ObjectMeta {
	name := fmt.Sprintf("%s-%d", kind, n)
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), ResourceVersion: "1",
		Annotations: map[string]string{}, Labels: map[string]string{}}
}

func (f facts) volume(n int) *v1.PersistentVolume {
	facts := f.sets[n].Volume
	volume := &v1.PersistentVolume{ObjectMeta: named("", "pv", n), Status: v1.PersistentVolumeStatus{Phase: v1.VolumeBound}}
	volume.Name = nameOfVolume(n, facts.Again)
	volume.Finalizers = []string{string(finalizer.External)}
	volume.Annotations[storage.AnnDynamicallyProvisioned] = driver
	if f.static && n == 1 {
		delete(volume.Annotations, storage.AnnDynamicallyProvisioned)
	}
	volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: volume.Name}
	if f.shared {
		volume.Spec.CSI.VolumeHandle = "shared"
	}
	volume.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
	if facts.Deletable {
		volume.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimDelete
	}
	if facts.Label {
		volume.Labels["lifecycle.exeunt.io/preserve"] = ""
	}
	if f.sets[n].released() {
		volume.Status.Phase = v1.VolumeReleased
	}
	volume.Spec.ClaimRef = &v1.ObjectReference{Namespace: f.namespace(n), Name: f.claim(n).Name, UID: claimUID(n, facts.Again)}
	return volume
}

func (f facts) claim(n int) *v1.PersistentVolumeClaim {
	facts := f.sets[n].Claim
	claim := &v1.PersistentVolumeClaim{ObjectMeta: named(f.namespace(n), "claim", n)}
	claim.UID, claim.Status.Phase = claimUID(n, facts.Again), v1.ClaimPending
	claim.Annotations[storage.AnnStorageProvisioner] = driver
	if facts.Phase == Bound {
		claim.Status.Phase, claim.Spec.VolumeName = v1.ClaimBound, nameOfVolume(n, facts.Again)
	}
	if facts.Deleting {
		claim.DeletionTimestamp = &metav1.Time{Time: began}
	}
	return claim
}

func (f facts) pod(n int) *v1.Pod {
	facts := f.sets[n].Pod
	pod := &v1.Pod{ObjectMeta: named(f.namespace(n), "pod", n)}
	if facts.Terminating {
		pod.DeletionTimestamp = &metav1.Time{Time: began}
	}
	source := v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprintf("claim-%d", n)}}
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: source}}
	return pod
}
