package machines

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// volume is a disk as the API names it.
type volume struct{ name, handle string }

// uniqueName is the name in volumesInUse and volumesAttached of a Node.
func (v volume) uniqueName() v1.UniqueVolumeName {
	return v1.UniqueVolumeName("kubernetes.io/csi/" + DriverName + "^" + v.handle)
}

// volumesOf returns the disks of a pod, and whether each of them is attached to its node. The caller holds the lock.
func (c *Cloud) volumesOf(object *v1.Pod) (disks []volume, ready bool) {
	for _, source := range object.Spec.Volumes {
		name := claimName(object, source)
		if name == "" {
			continue
		}
		claim := get[*v1.PersistentVolumeClaim](c.views.claims, object.Namespace+"/"+name)
		if claim == nil || claim.Status.Phase != v1.ClaimBound {
			return nil, false
		}
		handle, known := c.handleOf(claim.Spec.VolumeName)
		if !known || handle != "" && !c.isAttached(object.Spec.NodeName, claim.Spec.VolumeName) {
			return nil, false
		}
		if handle != "" {
			disks = append(disks, volume{name: claim.Spec.VolumeName, handle: handle})
		}
	}
	return disks, true
}

// claimName returns the name of the claim that the volume of a pod is, or "".
func claimName(object *v1.Pod, source v1.Volume) string {
	switch {
	case source.PersistentVolumeClaim != nil:
		return source.PersistentVolumeClaim.ClaimName
	case source.Ephemeral != nil:
		return object.Name + "-" + source.Name
	}
	return ""
}

// handleOf returns the disk of a PersistentVolume, "" if the volume is not of our driver, and whether it exists.
func (c *Cloud) handleOf(name string) (handle string, known bool) {
	pv := get[*v1.PersistentVolume](c.views.volumes, name)
	if pv == nil {
		return "", false
	}
	if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != DriverName {
		return "", true
	}
	return pv.Spec.CSI.VolumeHandle, true
}

// isAttached reports whether the attacher has reported the volume as attached to the node.
func (c *Cloud) isAttached(node, volume string) bool {
	found, err := c.views.attachments.GetIndexer().ByIndex(byAttachment, node+"/"+volume)
	if err != nil {
		panic(err) // the index exists
	}
	for _, object := range found {
		if a := object.(*storagev1.VolumeAttachment); a.Status.Attached && a.DeletionTimestamp == nil {
			return true
		}
	}
	return false
}

func attachmentKey(node string, a *storagev1.VolumeAttachment) string {
	if name := a.Spec.Source.PersistentVolumeName; name != nil && a.Spec.Attacher == DriverName {
		return node + "/" + *name
	}
	return ""
}
