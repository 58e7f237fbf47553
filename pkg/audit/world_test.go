package audit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

const worldDriver = "world.example.com"

// world is a storage system and the clusters that use it, in memory. It changes between
// any two requests of an audit.
type world struct {
	mu       sync.Mutex
	random   *rand.Rand
	clusters []*worldCluster
	volumes  []*worldVolume
	sequence int
	// planted are the handles of orphans, ghosts the names of PersistentVolumes without a
	// volume.
	planted, ghosts []string
	// pages are the rest of a list, by the token of the next page.
	pages map[string][]any
}

type worldVolume struct {
	sequence             int
	handle, name, source string
}

// worldCluster is one cluster. Names of objects are the keys.
type worldCluster struct {
	// journal: the provisioner writes a journal.
	journal  bool
	claims   map[string]*worldClaim
	records  map[string]*v1.PersistentVolume
	contents map[string]string
}

// worldClaim is a claim and the creation of its volume.
type worldClaim struct {
	uid            types.UID
	source         string
	entry, created bool
	// exists: the claim was not deleted; recorded: its PersistentVolume was created.
	exists, recorded bool
	handle           string
}

func (c *worldClaim) volumeName() string { return "pvc-" + string(c.uid) }

func newWorld(seed uint64) *world {
	w := &world{random: rand.New(rand.NewPCG(seed, 1)), pages: map[string][]any{}}
	for _, withJournal := range []bool{true, false} {
		w.clusters = append(w.clusters, &worldCluster{
			journal: withJournal, claims: map[string]*worldClaim{}, records: map[string]*v1.PersistentVolume{},
			contents: map[string]string{},
		})
	}
	for i := range 1 + w.random.IntN(4) {
		name := []string{fmt.Sprintf("planted-%d", i), "pvc-" + string(w.newUID())}[w.random.IntN(2)]
		w.planted = append(w.planted, w.addVolume(name, "").handle)
	}
	for range 80 {
		w.step()
	}
	for i := range w.random.IntN(3) {
		name := fmt.Sprintf("ghost-%d", i)
		w.clusters[0].records[name] = newRecord(name, "gone-"+name, w.newUID(), "")
		w.ghosts = append(w.ghosts, name)
	}
	return w
}

func (w *world) newUID() types.UID {
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", w.random.Uint32(), w.random.Uint64()>>16))
}

func (w *world) addVolume(name, source string) *worldVolume {
	w.sequence++
	volume := &worldVolume{w.sequence, fmt.Sprintf("vol-%06d", w.sequence), name, source}
	w.volumes = append(w.volumes, volume)
	return volume
}

func newRecord(name, handle string, uid, claim types.UID) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid,
		Annotations: map[string]string{storage.AnnDynamicallyProvisioned: worldDriver}}}
	volume.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: worldDriver, VolumeHandle: handle}
	volume.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	volume.Spec.ClaimRef = &v1.ObjectReference{UID: claim}
	volume.Status.Phase = v1.VolumeBound
	return volume
}

// change takes a few random steps, between two requests.
func (w *world) change() {
	for range w.random.IntN(4) {
		w.step()
	}
}

// step lets a user or a program act once.
func (w *world) step() {
	cluster := w.clusters[w.random.IntN(len(w.clusters))]
	steps := []func(*worldCluster){
		w.createClaim, w.provision, w.provision, w.provision, w.provision, w.deleteClaim, w.reclaim, w.reclaim,
		w.takeSnapshot, w.deleteSnapshot, w.handOver, w.forget,
	}
	steps[w.random.IntN(len(steps))](cluster)
}

// pick returns a random key for which such is true, "" for none.
func pick[T any](w *world, all map[string]T, such func(T) bool) string {
	var found []string
	for key, value := range all {
		if such(value) {
			found = append(found, key)
		}
	}
	if len(found) == 0 {
		return ""
	}
	slices.Sort(found)
	return found[w.random.IntN(len(found))]
}

func isBound(volume *v1.PersistentVolume) bool { return volume.Status.Phase == v1.VolumeBound }

func isReleased(volume *v1.PersistentVolume) bool { return volume.Status.Phase == v1.VolumeReleased }

// createClaim creates a claim, sometimes as a clone.
func (w *world) createClaim(cluster *worldCluster) {
	claim := &worldClaim{uid: w.newUID(), exists: true}
	if w.random.IntN(4) == 0 {
		if source := pick(w, cluster.records, isBound); source != "" &&
			w.find(cluster.records[source].Spec.CSI.VolumeHandle) != nil {
			claim.source = cluster.records[source].Spec.CSI.VolumeHandle
		}
	}
	cluster.claims[string(claim.uid)] = claim
}

// provision takes the next step of the provisioner for one claim.
func (w *world) provision(cluster *worldCluster) {
	key := pick(w, cluster.claims, func(c *worldClaim) bool { return c.entry || c.exists && !c.recorded })
	claim := cluster.claims[key]
	switch {
	case key == "":
	case cluster.journal && !claim.entry && !claim.recorded:
		claim.entry = true
	case !claim.created:
		if claim.source != "" && w.find(claim.source) == nil { // the source went: the driver refuses
			delete(cluster.claims, key)
			return
		}
		claim.created, claim.handle = true, w.addVolume(claim.volumeName(), claim.source).handle
	case !claim.recorded:
		claim.recorded = true
		record := newRecord(claim.volumeName(), claim.handle, w.newUID(), claim.uid)
		record.Spec.PersistentVolumeReclaimPolicy = []v1.PersistentVolumeReclaimPolicy{v1.PersistentVolumeReclaimDelete,
			v1.PersistentVolumeReclaimRetain}[w.random.IntN(2)]
		if !claim.exists {
			record.Status.Phase = v1.VolumeReleased
		}
		cluster.records[record.Name] = record
	case claim.entry:
		claim.entry = false
		if !claim.exists {
			delete(cluster.claims, key)
		}
	}
}

// deleteClaim deletes a claim, with a journal also while its volume is created.
func (w *world) deleteClaim(cluster *worldCluster) {
	key := pick(w, cluster.claims, func(c *worldClaim) bool { return c.exists && (c.recorded || c.entry) })
	if key == "" {
		return
	}
	claim := cluster.claims[key]
	claim.exists = false
	if record := cluster.records[claim.volumeName()]; record != nil {
		record.Status.Phase = v1.VolumeReleased
	}
	if !claim.entry {
		delete(cluster.claims, key)
	}
}

// reclaim deletes a released volume with the policy Delete, in two steps, unless a snapshot
// or another cluster needs its disk.
func (w *world) reclaim(cluster *worldCluster) {
	name := pick(w, cluster.records, func(r *v1.PersistentVolume) bool {
		return isReleased(r) && r.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete
	})
	if name == "" || w.hasEntry(cluster, name) {
		return
	}
	handle := cluster.records[name].Spec.CSI.VolumeHandle
	if w.find(handle) == nil {
		delete(cluster.records, name)
		return
	}
	if w.records(handle) == 1 && !w.isSource(handle) && !w.hasSnapshot(handle) {
		w.volumes = slices.DeleteFunc(w.volumes, func(v *worldVolume) bool { return v.handle == handle })
	}
}

// takeSnapshot creates a VolumeSnapshotContent of a volume.
func (w *world) takeSnapshot(cluster *worldCluster) {
	name := pick(w, cluster.records, isBound)
	if name == "" || w.find(cluster.records[name].Spec.CSI.VolumeHandle) == nil {
		return
	}
	w.sequence++
	cluster.contents[fmt.Sprintf("content-%d", w.sequence)] = cluster.records[name].Spec.CSI.VolumeHandle
}

func (w *world) deleteSnapshot(cluster *worldCluster) {
	if name := pick(w, cluster.contents, func(string) bool { return true }); name != "" {
		delete(cluster.contents, name)
	}
}

// handOver moves a volume with the policy Retain into the other cluster, in two steps: it
// is recorded there first.
func (w *world) handOver(cluster *worldCluster) {
	other := w.clusters[0]
	if other == cluster {
		other = w.clusters[1]
	}
	name := pick(w, cluster.records, func(r *v1.PersistentVolume) bool {
		return r.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimRetain
	})
	if name == "" || w.hasEntry(cluster, name) {
		return
	}
	record := cluster.records[name]
	if w.records(record.Spec.CSI.VolumeHandle) > 1 {
		delete(cluster.records, name)
		return
	}
	w.sequence++
	moved := newRecord(fmt.Sprintf("moved-%d", w.sequence), record.Spec.CSI.VolumeHandle, w.newUID(), "")
	moved.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
	other.records[moved.Name] = moved
}

// forget deletes a PersistentVolume whose volume is kept, often with a snapshot left.
func (w *world) forget(cluster *worldCluster) {
	name := pick(w, cluster.records, func(r *v1.PersistentVolume) bool {
		return isReleased(r) && r.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimRetain
	})
	if name != "" && !w.hasEntry(cluster, name) {
		delete(cluster.records, name)
	}
}

func (w *world) hasEntry(cluster *worldCluster, volume string) bool {
	for _, claim := range cluster.claims {
		if claim.volumeName() == volume && claim.entry {
			return true
		}
	}
	return false
}

func (w *world) find(handle string) *worldVolume {
	for _, volume := range w.volumes {
		if volume.handle == handle {
			return volume
		}
	}
	return nil
}

func (w *world) records(handle string) int {
	count := 0
	for _, cluster := range w.clusters {
		for _, record := range cluster.records {
			if record.Spec.CSI.VolumeHandle == handle {
				count++
			}
		}
	}
	return count
}

func (w *world) hasSnapshot(handle string) bool {
	for _, cluster := range w.clusters {
		for _, source := range cluster.contents {
			if source == handle {
				return true
			}
		}
	}
	return false
}

func (w *world) isSource(handle string) bool {
	for _, cluster := range w.clusters {
		for _, claim := range cluster.claims {
			if claim.source == handle && !claim.recorded {
				return true
			}
		}
	}
	return slices.ContainsFunc(w.volumes, func(v *worldVolume) bool { return v.source == handle })
}

// needs reports whether a cluster needs the volume.
func (w *world) needs(handle string) bool {
	for _, cluster := range w.clusters {
		for _, claim := range cluster.claims {
			if claim.handle == handle {
				return true
			}
		}
	}
	return w.records(handle) > 0 || w.hasSnapshot(handle) || w.isSource(handle)
}

// lease returns the journal of the cluster.
func (c *worldCluster) lease() coordinationv1.Lease {
	texts := map[types.UID]string{}
	for _, claim := range c.claims {
		if !claim.entry {
			continue
		}
		request := &csi.CreateVolumeRequest{Name: claim.volumeName()}
		if claim.source != "" {
			request.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: claim.source}}}
		}
		text, err := journal.Encode(journal.Entry{
			UID: claim.uid, Namespace: "default", Name: "claim", Request: journal.Request{CreateVolumeRequest: request},
			Volume: &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.volumeName()}},
		})
		if err != nil {
			panic(err)
		}
		texts[claim.uid] = text
	}
	j := journal.Journal{Namespace: "exeunt-system", Driver: worldDriver}
	return *j.Lease(journal.KindActive, 0, "provisioner", journal.Custody{Written: 1}, texts)
}
