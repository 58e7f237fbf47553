package audit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/audit/verdict"
	"github.com/exeunt-io/exeunt/pkg/disk"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// references is everything in all clusters that refers to volumes, of both passes.
type references struct {
	// driver is the audited driver, plugin the in-tree plugin that it replaced, or "".
	driver, plugin string
	library        migration.Library

	// recorded are the handles in PersistentVolumes of any driver.
	recorded map[uint64]record
	// shared are the handles that two PersistentVolumes of the audited driver have.
	shared set
	// volumes is the number of handles in PersistentVolumes of the audited driver.
	volumes int
	// alike are the spellings of all used handles, see verdict.Spelling.
	alike set
	// attached, snapshots, clones and inline are handles.
	attached, snapshots, clones, inline set
	// snapshotIDs are snapshots whose content does not name the source volume, tracedIDs those
	// of groups, whose content does.
	snapshotIDs, tracedIDs set
	// attachedNames are the names of the PersistentVolumes in VolumeAttachments.
	attachedNames set
	// unknownAttached are those of them that do not exist and were not provisioned.
	unknownAttached set
	// claims are all claims, entries those with a journal entry, unresolved those with an
	// unresolved or unreadable entry.
	claims, entries, unresolved verdict.Claims
	// entryTexts and unresolvedTexts are the volume names and handles in journal entries.
	entryTexts, unresolvedTexts set
	// anyInFlight: a volume without a known name may belong to a claim or an entry.
	// anyUnresolved and anyAttached likewise.
	anyInFlight, anyUnresolved, anyAttached bool
	// unreadable: a journal entry that cannot be decoded may name any volume.
	unreadable bool

	// incomplete are sentences about what could not be read.
	incomplete []string
}

// record is a PersistentVolume with a handle.
type record struct {
	// uid and name are hashes; name is 0 unless a provisioner named the object.
	uid, name uint64
	// own: the PersistentVolume is one of the audited driver.
	own bool
}

func newReferences(driver string) *references {
	library := migration.New()
	plugin, _ := library.Plugin(driver)
	return &references{
		driver: driver, plugin: plugin, library: library,
		recorded: map[uint64]record{}, shared: set{}, alike: set{}, attached: set{}, snapshots: set{}, clones: set{},
		inline:        set{},
		attachedNames: set{}, unknownAttached: set{}, snapshotIDs: set{}, tracedIDs: set{}, entryTexts: set{},
		unresolvedTexts: set{},
	}
}

// use adds a handle that something refers to.
func (r *references) use(handles set, handle string) {
	if handle != "" {
		handles.add(handle)
		r.alike.add(verdict.Spelling(handle))
	}
}

// isOwn reports whether the provisioner is the audited driver or the plugin that it replaced.
func (r *references) isOwn(provisioner string) bool {
	return provisioner != "" && (provisioner == r.driver || provisioner == r.plugin)
}

// addLease adds the entries of a journal. Entries in a Lease that is not named as a journal
// count too: a user may have removed labels and annotations. The error is about an entry
// that cannot be read.
func (r *references) addLease(lease *coordinationv1.Lease) (unreadable error) {
	owner, kind, _, isJournal := journal.Find(lease)
	unresolved := isJournal && kind == journal.KindUnresolved
	for uid, text := range journal.Encoded(lease) {
		claims, texts := &r.entries, r.entryTexts
		entry, err := journal.Decode(uid, text)
		if err != nil || unresolved || entry.Unresolved != nil {
			claims, texts = &r.unresolved, r.unresolvedTexts
		}
		claims.Add(string(uid))
		if !isJournal || r.isOwn(owner.Driver) {
			r.anyInFlight = true
			r.anyUnresolved = r.anyUnresolved || unresolved
			r.unreadable = r.unreadable || err != nil
			unreadable = cmp.Or(unreadable, err)
		}
		if err != nil {
			continue
		}
		texts.add(entry.VolumeName())
		r.use(texts, entry.Handle)
		for _, request := range append(entry.Superseded, entry.Request) {
			texts.add(request.VolumeName())
			r.use(r.clones, request.GetVolumeContentSource().GetVolume().GetVolumeId())
		}
	}
	return unreadable
}

// addClaim adds a claim. bound collects the UIDs of bound claims whose volume may be one of
// the audited driver.
func (r *references) addClaim(claim *metav1.PartialObjectMetadata, bound set) {
	r.claims.Add(string(claim.UID))
	_, isBound := claim.Annotations[storage.AnnBindCompleted]
	provisioner, older := claim.Annotations[storage.AnnStorageProvisioner],
		claim.Annotations[storage.AnnBetaStorageProvisioner]
	isOwn := r.isOwn(provisioner) || r.isOwn(older)
	switch {
	case isBound && (isOwn || provisioner+older == ""):
		bound.add(string(claim.UID))
	case !isBound && isOwn:
		r.anyInFlight = true
	}
}

// addPod adds the inline volumes of a pod.
func (r *references) addPod(pod *v1.Pod) (err error) {
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if volume.CSI != nil {
			r.use(r.inline, kubeletHandle(pod, volume.Name))
			continue
		}
		translated, failure := r.library.Inline(volume, pod.Namespace)
		switch {
		case failure != nil:
			err = failure
		case translated != nil:
			r.use(r.inline, translated.Spec.CSI.VolumeHandle)
		}
	}
	return err
}

// kubeletHandle returns the handle that the kubelet gives to an inline volume of the pod.
func kubeletHandle(pod *v1.Pod, volume string) string {
	sum := sha256.Sum256([]byte(string(pod.UID) + volume))
	return "csi-" + hex.EncodeToString(sum[:])
}

// addAttachment adds a VolumeAttachment. waiting collects the PersistentVolumes that it
// names until they are read, see reading.attached.
func (r *references) addAttachment(attachment *storagev1.VolumeAttachment, waiting map[uint64]bool) error {
	source := attachment.Spec.Source
	if name := source.PersistentVolumeName; name != nil {
		r.attachedNames.add(*name)
		if r.isOwn(attachment.Spec.Attacher) {
			waiting[hash(*name)] = verdict.Name(*name, nil) == *name
		}
	}
	if source.InlineVolumeSpec == nil {
		return nil
	}
	_, handle, err := r.handleOf(&v1.PersistentVolume{Spec: *source.InlineVolumeSpec})
	r.use(r.attached, handle)
	return err
}

// handleOf returns driver and handle of a volume, "" for a volume of a plugin that is not
// migrated to CSI.
func (r *references) handleOf(volume *v1.PersistentVolume) (driver, handle string, err error) {
	if source := volume.Spec.CSI; source != nil {
		return source.Driver, source.VolumeHandle, nil
	}
	if r.library.PluginOf(volume) == "" {
		return "", "", nil
	}
	translated, err := r.library.For(r.driver).Volume(volume)
	switch {
	case err != nil && r.isOwn(r.library.PluginOf(volume)):
		return "", "", err
	case err != nil: // a disk of another storage system
		return "", "", nil
	}
	return translated.Spec.CSI.Driver, translated.Spec.CSI.VolumeHandle, nil
}

// addVolume adds a PersistentVolume, and returns its handle if it is a volume of the
// audited driver.
func (r *references) addVolume(volume *v1.PersistentVolume) (own string, err error) {
	driver, handle, err := r.handleOf(volume)
	for _, text := range append(sourceTexts(volume), handle) {
		r.alike.add(verdict.Spelling(text))
	}
	if handle == "" {
		return "", err
	}
	now := record{uid: hash(string(volume.UID)), own: driver == r.driver}
	if isNamedForClaim(volume) {
		now.name = hash(volume.Name)
	}
	key := hash(handle)
	before, found := r.recorded[key]
	switch {
	case found && before.own && now.own && before.uid != now.uid:
		r.shared.add(handle)
	case now.own && !before.own:
		r.volumes++
	}
	if now.own || !before.own {
		r.recorded[key] = now
	}
	if now.own {
		return handle, err
	}
	return "", err
}

// isNamedForClaim reports whether the name of the volume is that of the storage system: a
// provisioner created the object, and named it for its claim.
func isNamedForClaim(volume *v1.PersistentVolume) bool {
	if !storage.HasProvisioner(volume) || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID == "" {
		return false
	}
	var claim verdict.Claims
	claim.Add(string(volume.Spec.ClaimRef.UID))
	return claim.Named(volume.Name)
}

// sourceTexts returns the names that a volume without a CSI source has for its disk. A CSI
// driver may use them in its handles.
func sourceTexts(volume *v1.PersistentVolume) []string {
	switch source := volume.Spec.PersistentVolumeSource; {
	case source.CSI != nil:
		return nil
	case source.NFS != nil:
		return []string{source.NFS.Path}
	case source.RBD != nil:
		return []string{source.RBD.RBDImage}
	case source.ISCSI != nil:
		return []string{source.ISCSI.IQN}
	case source.FC != nil:
		return slices.Concat(source.FC.WWIDs, source.FC.TargetWWNs)
	case source.CephFS != nil:
		return []string{source.CephFS.Path}
	case source.Glusterfs != nil:
		return []string{source.Glusterfs.Path}
	case source.FlexVolume != nil:
		var texts []string
		for _, value := range source.FlexVolume.Options {
			texts = append(texts, value)
		}
		return texts
	}
	return []string{disk.PluginName(volume)}
}

// miss records once what could not be read.
func (r *references) miss(sentence string) {
	if !slices.Contains(r.incomplete, sentence) {
		r.incomplete = append(r.incomplete, sentence)
	}
}
