package intree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/disk"
)

const (
	// HostPathName is the name of the plugin of host-path volumes.
	HostPathName = prefix + "host-path"
	// HostPathRoot is the directory that contains its volumes.
	HostPathRoot = "/tmp"
	// hostPathBase is the directory of provisioned volumes in the root.
	hostPathBase = "hostpath_pv"
	// createdBy and hostPathCreator are the annotation of provisioned volumes.
	createdBy       = "kubernetes.io/createdby"
	hostPathCreator = "hostpath-dynamic-provisioner"
)

// HostPath serves directories of the machine that the program runs on, for tests and for
// clusters of one machine.
type HostPath struct {
	// Root is the directory below which volumes are provisioned and deleted.
	Root string
	// Provisions allows provisioning.
	Provisions bool
	// Recycling describes the recycler pods.
	Recycling Recycling
	// Node is the name of the machine, "" if unknown.
	Node string
}

// Name implements [Plugin].
func (h *HostPath) Name() string { return HostPathName }

// Location implements [Plugin].
func (h *HostPath) Location(volume *v1.PersistentVolume) string {
	return disk.HostPath(volume)
}

// Describe implements [Provisioner]. The directory has the name of the volume.
func (h *HostPath) Describe(request Request) (*v1.PersistentVolume, error) {
	if err := h.refuse(request); err != nil {
		return nil, err
	}
	modes := request.Claim.Spec.AccessModes
	if len(modes) == 0 {
		modes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}
	}
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: request.VolumeName, Annotations: map[string]string{createdBy: hostPathCreator}},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: request.Policy(),
			AccessModes:                   modes,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: request.Claim.Spec.Resources.Requests[v1.ResourceStorage]},
			PersistentVolumeSource: v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path.Join(h.Root,
				hostPathBase, request.VolumeName)}},
		},
	}, nil
}

// Create creates the directory of the volume, unless it exists.
func (h *HostPath) Create(_ context.Context, volume *v1.PersistentVolume) error {
	return h.inRoot(volume, "create", func(root *os.Root, name string) error { return root.MkdirAll(name, 0o750) })
}

// refuse returns an error for a request that the plugin cannot serve.
func (h *HostPath) refuse(request Request) error {
	claim := request.Claim
	switch mode := claim.Spec.VolumeMode; {
	case !h.Provisions:
		return fmt.Errorf("provisioning in volume plugin %q is %w", HostPathName, ErrDisabled)
	case mode != nil && *mode == v1.PersistentVolumeBlock:
		return &NodeRefused{Err: fmt.Errorf("%s does not support block volume provisioning", HostPathName)}
	case len(request.Class.MountOptions) > 0:
		return fmt.Errorf("mount options are not supported by the provisioner %s, and StorageClass %q has mount options %v",
			HostPathName, request.Class.Name, request.Class.MountOptions)
	case claim.Spec.DataSource != nil || claim.Spec.DataSourceRef != nil:
		return fmt.Errorf("plugin %q is not a CSI plugin, and only a CSI plugin can provision a claim with a datasource",
			HostPathName)
	}
	return nil
}

// Delete deletes the directory.
func (h *HostPath) Delete(_ context.Context, volume *v1.PersistentVolume) error {
	return h.inRoot(volume, "delete", (*os.Root).RemoveAll)
}

// CanDelete implements [Selective]: only paths below the root are deleted.
func (h *HostPath) CanDelete(volume *v1.PersistentVolume) bool {
	if volume.Spec.HostPath == nil {
		return false
	}
	_, err := h.below(volume.Spec.HostPath.Path, "delete")
	return err == nil
}

// inRoot changes the directory of the volume. It refuses every path that is not below the
// root.
func (h *HostPath) inRoot(volume *v1.PersistentVolume, verb string,
	change func(root *os.Root, name string) error) error {
	if volume.Spec.HostPath == nil {
		return fmt.Errorf("volume %s has no host path, so plugin %s cannot %s it", volume.Name, HostPathName, verb)
	}
	name, err := h.below(volume.Spec.HostPath.Path, verb)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(h.Root)
	if err != nil {
		return fmt.Errorf("open directory of host-path volumes: %w", err)
	}
	defer root.Close()
	if err := withoutLinks(root, name); err != nil {
		return err
	}
	if err := change(root, name); err != nil {
		return fmt.Errorf("%s directory of volume: %w", verb, err)
	}
	return nil
}

// below returns the path relative to the root. The verb is part of the error message. Of the directory of provisioned
// volumes only what is inside belongs to one volume: with the directory itself the data of all would go.
func (h *HostPath) below(full, verb string) (string, error) {
	name, inside := strings.CutPrefix(strings.TrimSuffix(full, "/"), h.Root+"/")
	if !inside || name != path.Clean(name) || !fs.ValidPath(name) || name == hostPathBase || name == "." {
		return "", fmt.Errorf("cannot %s volume at %q: host_path deleter only supports %s/.+, and plugin %s creates volumes only there", verb, full, h.Root, HostPathName)
	}
	return name, nil
}

// withoutLinks returns an error if any part of the path is a symbolic link, which may lead
// out of the root.
func withoutLinks(root *os.Root, name string) error {
	for at := name; at != "."; at = path.Dir(at) {
		info, err := root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("look at the path of the volume: %w", err)
		case info.Mode()&fs.ModeSymlink != 0:
			return fmt.Errorf("plugin %s follows no symbolic links, and %q is one", HostPathName, path.Join(root.Name(), at))
		}
	}
	return nil
}

// RecyclerNamespace implements [Recycler].
func (h *HostPath) RecyclerNamespace() string { return h.Recycling.namespace() }

// RecyclerPod implements [Recycler]. The pod runs on a node that reaches the volume.
func (h *HostPath) RecyclerPod(volume *v1.PersistentVolume) *v1.Pod {
	pod := h.Recycling.pod(volume, v1.VolumeSource{HostPath: &v1.HostPathVolumeSource{Path: volume.Spec.HostPath.Path}})
	if affinity := volume.Spec.NodeAffinity; affinity != nil && affinity.Required != nil {
		if pod.Spec.Affinity == nil {
			pod.Spec.Affinity = &v1.Affinity{}
		}
		if pod.Spec.Affinity.NodeAffinity == nil {
			pod.Spec.Affinity.NodeAffinity = &v1.NodeAffinity{}
		}
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = affinity.Required.DeepCopy()
	}
	return pod
}

// LocationOnNode implements [NodeBound]: a host path may contain local volumes.
func (h *HostPath) LocationOnNode(volume *v1.PersistentVolume) string {
	return disk.Local(volume)
}

// Apart implements [NodeBound].
func (h *HostPath) Apart(volume, other *v1.PersistentVolume) bool {
	return disk.OnSeparateNodes(h.Node, volume, other)
}
