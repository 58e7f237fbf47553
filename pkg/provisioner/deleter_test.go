package provisioner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/provisioner/backend"
)

// guarded is a provisioner with a DeletionGuard.
type guarded struct {
	scripted
	allows bool
}

func (g *guarded) ShouldDelete(context.Context, *v1.PersistentVolume) bool { return g.allows }

func TestDelete(t *testing.T) {
	failed := errors.New("failed")
	for name, tc := range map[string]struct {
		provisioner controller.Provisioner
		ignored     bool
		err         error
	}{
		"deleted":         {&scripted{}, false, nil},
		"failed":          {&scripted{err: failed}, false, failed},
		"ignored":         {&scripted{err: &controller.IgnoredError{Reason: "other"}}, true, nil},
		"guard allows":    {&guarded{allows: true}, false, nil},
		"guard forbids":   {&guarded{allows: false}, true, nil},
		"guard, failed":   {&guarded{allows: true, scripted: scripted{err: failed}}, false, failed},
		"wrapped ignored": {&scripted{err: errors.Join(failed, &controller.IgnoredError{Reason: "other"})}, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := deleteVolume(t.Context(), newStorage(tc.provisioner))
			var ignored *backend.Ignored
			if errors.As(err, &ignored) != tc.ignored || !tc.ignored && !errors.Is(err, tc.err) {
				t.Errorf("error = %v, want ignored = %v, %v", err, tc.ignored, tc.err)
			}
		})
	}
}

// deleteVolume deletes the test volume in the storage system.
func deleteVolume(ctx context.Context, s *storage) error {
	call, err := s.PrepareDelete(ctx, testVolume())
	if err != nil {
		return err
	}
	return call(ctx)
}

// discardVolume deletes the test volume, which no PersistentVolume records.
func discardVolume(ctx context.Context, s *storage) error {
	call, err := s.PrepareDiscard(ctx, testVolume(), "handle")
	if err != nil {
		return err
	}
	return call(ctx)
}

func TestGuardedVolumeIsNotDeleted(t *testing.T) {
	provisioner := &guarded{}
	if err := deleteVolume(t.Context(), newStorage(provisioner)); err == nil || len(provisioner.deleted) > 0 {
		t.Errorf("Delete was called %d times, error %v", len(provisioner.deleted), err)
	}
}

func TestDiscardIsNeitherGuardedNorIgnored(t *testing.T) {
	provisioner := &guarded{}
	if err := discardVolume(t.Context(), newStorage(provisioner)); err != nil || len(provisioner.deleted) != 1 {
		t.Errorf("Delete was called %d times, error %v; want one call", len(provisioner.deleted), err)
	}
	provisioner.err = &controller.IgnoredError{Reason: "other"}
	var ignored *backend.Ignored
	if err := discardVolume(t.Context(), newStorage(provisioner)); err == nil || errors.As(err, &ignored) {
		t.Errorf("error = %v, want a failure", err)
	}
}

func TestTimeoutBoundsDelete(t *testing.T) {
	s := newStorage(&stuck{})
	s.deletionTimeout = time.Nanosecond
	if err := deleteVolume(t.Context(), s); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v", err)
	}
	if err := discardVolume(t.Context(), s); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error = %v", err)
	}
}

// stuck is a provisioner whose Delete never answers.
type stuck struct{ scripted }

func (s *stuck) Delete(ctx context.Context, _ *v1.PersistentVolume) error {
	<-ctx.Done()
	return ctx.Err()
}

// sourced returns a volume with a source.
func sourced(change func(*v1.PersistentVolumeSource)) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{}
	change(&volume.Spec.PersistentVolumeSource)
	return volume
}

func TestSourcesOfOneDiskAreTheSame(t *testing.T) {
	nfs := func(path string, readOnly bool) *v1.PersistentVolume {
		return sourced(func(s *v1.PersistentVolumeSource) {
			s.NFS = &v1.NFSVolumeSource{Server: "a", Path: path, ReadOnly: readOnly}
		})
	}
	host := func(path string) *v1.PersistentVolume {
		return sourced(func(s *v1.PersistentVolumeSource) { s.HostPath = &v1.HostPathVolumeSource{Path: path} })
	}
	csi := func(driver, handle, key string) *v1.PersistentVolume {
		return sourced(func(s *v1.PersistentVolumeSource) {
			s.CSI = &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle,
				VolumeAttributes: map[string]string{"key": key}}
		})
	}
	local := func(path string) *v1.PersistentVolume {
		return sourced(func(s *v1.PersistentVolumeSource) { s.Local = &v1.LocalVolumeSource{Path: path} })
	}
	for name, tc := range map[string]struct {
		a, b *v1.PersistentVolume
		same bool
	}{
		"NFS, read-only":       {nfs("/x", true), nfs("/x/", false), true},
		"NFS, other directory": {nfs("/x", false), nfs("/y", false), false},
		"host path":            {host("/x"), host("/x/"), true},
		"host path and NFS":    {host("/a/x"), nfs("/x", false), false},
		"CSI, attributes":      {csi("d", "1", "a"), csi("d", "1", "b"), true},
		"CSI, other driver":    {csi("d", "1", "a"), csi("e", "1", "a"), false},
		"local":                {local("/x"), local("/x"), true},
		"local, other":         {local("/x"), local("/y"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newStorage(&scripted{}).Same(tc.a, tc.b); got != tc.same {
				t.Errorf("same = %v, want %v", got, tc.same)
			}
		})
	}
}

func TestNetworkSourcesOfOneDiskAreTheSame(t *testing.T) {
	fc := func(name string, readOnly bool) *v1.PersistentVolume {
		return sourced(func(s *v1.PersistentVolumeSource) {
			s.FC = &v1.FCVolumeSource{TargetWWNs: []string{name}, Lun: ptr.To[int32](1), ReadOnly: readOnly}
		})
	}
	ceph := func(path string, monitors ...string) *v1.PersistentVolume {
		return sourced(func(s *v1.PersistentVolumeSource) {
			s.CephFS = &v1.CephFSPersistentVolumeSource{Path: path, Monitors: monitors, User: monitors[0]}
		})
	}
	rbd := func(image string, monitors ...string) *v1.PersistentVolume {
		return sourced(func(s *v1.PersistentVolumeSource) {
			s.RBD = &v1.RBDPersistentVolumeSource{RBDImage: image, CephMonitors: monitors}
		})
	}
	for name, tc := range map[string]struct {
		a, b *v1.PersistentVolume
		same bool
	}{
		"FC, read-only":      {fc("a", true), fc("a", false), true},
		"FC, other target":   {fc("a", true), fc("b", true), false},
		"CephFS, monitors":   {ceph("/a", "m", "n"), ceph("/a", "n", "m"), true},
		"CephFS, other path": {ceph("/a", "m"), ceph("/b", "m"), false},
		"RBD, monitors":      {rbd("a", "m", "n"), rbd("a", "n", "m"), true},
		"RBD, other image":   {rbd("a", "m"), rbd("b", "m"), false},
	} {
		if got := newStorage(&scripted{}).Same(tc.a, tc.b); got != tc.same {
			t.Errorf("%s: same = %v, want %v", name, got, tc.same)
		}
	}
}

// The API server sets fields of these sources that the provisioner leaves empty.
func TestDefaultedSourceIsTheSame(t *testing.T) {
	for name, tc := range map[string]struct{ returned, stored, other v1.PersistentVolumeSource }{
		"iSCSI": {
			v1.PersistentVolumeSource{ISCSI: &v1.ISCSIPersistentVolumeSource{TargetPortal: "p", IQN: "i", Lun: 1}},
			v1.PersistentVolumeSource{ISCSI: &v1.ISCSIPersistentVolumeSource{TargetPortal: "p", IQN: "i", Lun: 1,
				ISCSIInterface: "default"}},
			v1.PersistentVolumeSource{ISCSI: &v1.ISCSIPersistentVolumeSource{TargetPortal: "p", IQN: "i", Lun: 2}},
		},
		"RBD": {
			v1.PersistentVolumeSource{RBD: &v1.RBDPersistentVolumeSource{CephMonitors: []string{"m"}, RBDImage: "i"}},
			v1.PersistentVolumeSource{RBD: &v1.RBDPersistentVolumeSource{CephMonitors: []string{"m"}, RBDImage: "i",
				RBDPool: "rbd", RadosUser: "admin", Keyring: "/etc/ceph/keyring"}},
			v1.PersistentVolumeSource{RBD: &v1.RBDPersistentVolumeSource{CephMonitors: []string{"m"}, RBDImage: "i",
				RBDPool: "ssd"}},
		},
		"Azure disk": {
			v1.PersistentVolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{DiskName: "n", DataDiskURI: "u"}},
			v1.PersistentVolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{DiskName: "n", DataDiskURI: "u",
				FSType: ptr.To("ext4"), ReadOnly: ptr.To(false)}},
			v1.PersistentVolumeSource{AzureDisk: &v1.AzureDiskVolumeSource{DiskName: "n", DataDiskURI: "w"}},
		},
		"ScaleIO": {
			v1.PersistentVolumeSource{ScaleIO: &v1.ScaleIOPersistentVolumeSource{Gateway: "g", System: "s", VolumeName: "v"}},
			v1.PersistentVolumeSource{ScaleIO: &v1.ScaleIOPersistentVolumeSource{Gateway: "g", System: "s", VolumeName: "v",
				StorageMode: "ThinProvisioned", FSType: "xfs"}},
			v1.PersistentVolumeSource{ScaleIO: &v1.ScaleIOPersistentVolumeSource{Gateway: "g", System: "s", VolumeName: "w"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			handle := func(source v1.PersistentVolumeSource) string {
				return newStorage(&scripted{}).
					HandleOf(&v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: source}})
			}
			if handle(tc.returned) != handle(tc.stored) {
				t.Errorf("handles %s and %s of one disk", handle(tc.returned), handle(tc.stored))
			}
			if handle(tc.returned) == handle(tc.other) {
				t.Errorf("handle %s of two disks", handle(tc.other))
			}
		})
	}
}

// volumeOn returns a volume on the node, "" for all nodes.
func volumeOn(source v1.PersistentVolumeSource, node string) *v1.PersistentVolume {
	volume := &v1.PersistentVolume{Spec: v1.PersistentVolumeSpec{PersistentVolumeSource: source}}
	if node != "" {
		volume.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn,
				Values: []string{node}}},
		}}}}
	}
	return volume
}

// Deleting a directory deletes those in it.
func TestDirectoryInsideAnother(t *testing.T) {
	at := func(path string, nodes ...string) *v1.PersistentVolume {
		return volumeOn(v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: path}}, strings.Join(nodes, ""))
	}
	exported := func(server, path string) *v1.PersistentVolume {
		return volumeOn(v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: server, Path: path}}, "")
	}
	disk := volumeOn(v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "/a/b"}}, "")
	for name, tc := range map[string]struct {
		volume, other *v1.PersistentVolume
		want          bool
	}{
		"directly":           {at("/a/b"), at("/a"), true},
		"deeper":             {at("/a/b/c/d/"), at("/a"), true},
		"in the root":        {at("/a"), at("/"), true},
		"the same":           {at("/a"), at("/a"), false},
		"around":             {at("/a"), at("/a/b"), false},
		"beside":             {at("/ab"), at("/a"), false},
		"export":             {exported("s", "/a/b"), exported("S.", "/a"), true},
		"whole server":       {exported("s", "/a/b"), exported("s", "/"), true},
		"other server":       {exported("s", "/a/b"), exported("t", "/a"), false},
		"other kind":         {at("/a/b"), exported("s", "/a"), false},
		"no directory":       {disk, at("/"), false},
		"other node":         {at("/a/b", "n"), at("/a", "m"), false},
		"same node":          {at("/a/b", "n"), at("/a", "n"), true},
		"any node":           {at("/a/b"), at("/a", "n"), true},
		"local volume":       {volumeOn(v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/a/b"}}, "n"), at("/a", "n"), true},
		"around it":          {at("/a/b", "n"), volumeOn(v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/a"}}, "n"), true},
		"an empty directory": {at(""), at("/"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newStorage(&scripted{}).Inside(tc.volume, tc.other); got != tc.want {
				t.Errorf("Inside = %v, want %v", got, tc.want)
			}
			shared := newStorage(&scripted{})
			if shared.sharedSources = true; shared.Inside(tc.volume, tc.other) {
				t.Error("sources may be shared, and count")
			}
		})
	}
}

func TestDirectoriesOfSeparateNodesAreTwoDisks(t *testing.T) {
	local := v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/x"}}
	host := v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/x"}}
	export := v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: "a", Path: "/x"}}
	for name, tc := range map[string]struct {
		source v1.PersistentVolumeSource
		a, b   string // the nodes, "" for all
		same   bool
	}{
		"local, one node":           {local, "a", "a", true},
		"local, two nodes":          {local, "a", "b", false},
		"host path, one node":       {host, "a", "a", true},
		"host path, two nodes":      {host, "a", "b", false},
		"host path, unknown node":   {host, "a", "", true},
		"host path, unknown nodes":  {host, "", "", true},
		"NFS from two nodes":        {export, "a", "b", true},
		"NFS from one and any node": {export, "a", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s, a, b := newStorage(&scripted{}), volumeOn(tc.source, tc.a), volumeOn(tc.source, tc.b)
			if got := s.Same(a, b); got != tc.same {
				t.Errorf("same = %v, want %v", got, tc.same)
			}
			if tc.same && !slices.Equal(s.Keys(a), s.Keys(b)) {
				t.Errorf("keys %v and %v: the index does not find the other volume", s.Keys(a), s.Keys(b))
			}
			if !tc.same && s.HandleOf(a) == s.HandleOf(b) {
				t.Errorf("one handle %s of two disks: only one of them could be created at a time", s.HandleOf(a))
			}
		})
	}
}
