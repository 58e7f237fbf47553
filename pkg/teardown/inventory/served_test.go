package inventory_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// nfsService returns a Service of the namespace storage.
func nfsService() *v1.Service {
	return service(func(s *v1.Service) {
		s.Namespace, s.Name, s.Finalizers, s.Status = "storage", "nfs", nil, v1.ServiceStatus{}
		s.Spec = v1.ServiceSpec{Type: v1.ServiceTypeClusterIP, ClusterIPs: []string{"10.0.0.5", "fd00::5"}}
	})
}

func keptOf(source v1.PersistentVolumeSource) edit[v1.PersistentVolume] {
	return func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = source
		retain(v)
	}
}

func ofNFS(server string) edit[v1.PersistentVolume] {
	return keptOf(v1.PersistentVolumeSource{NFS: &v1.NFSVolumeSource{Server: server, Path: "/"}})
}

func ofAttribute(name, value string) edit[v1.PersistentVolume] {
	return keptOf(v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "nfs.csi.k8s.io", VolumeHandle: "h",
		VolumeAttributes: map[string]string{name: value}}})
}

var served = map[string]struct {
	source edit[v1.PersistentVolume]
	kept   bool
}{
	"address":            {ofNFS("10.0.0.5"), true},
	"second address":     {ofNFS("FD00:0::5"), true},
	"in brackets":        {ofNFS("[fd00::5]"), true},
	"name":               {ofNFS("nfs.storage.svc.cluster.local."), true},
	"short name":         {ofNFS("nfs.storage"), true},
	"name of a pod":      {ofNFS("nfs-0.nfs.storage.svc.cluster.local"), true},
	"outside":            {ofNFS("192.0.2.9"), false},
	"name outside":       {ofNFS("nfs.storage.example.com"), false},
	"another Service":    {ofNFS("other.storage.svc"), false},
	"CSI driver for NFS": {ofAttribute("server", "nfs.storage.svc.cluster.local"), true},
	"class in capitals":  {ofAttribute("Server", "nfs.storage.svc.cluster.local"), true},
	"CSI driver for SMB": {ofAttribute("source", "//nfs.storage.svc.cluster.local/share"), true},
	"iSCSI": {keptOf(v1.PersistentVolumeSource{ISCSI: &v1.ISCSIPersistentVolumeSource{TargetPortal: "10.0.0.5:3260"}}),
		true},
	"to be deleted": {func(v *v1.PersistentVolume) {
		ofNFS("10.0.0.5")(v)
		v.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimDelete
	}, false},
}

// A pod serves the kept volume from a disk of its own. No CSI driver shows where.
func TestDiskBelowKeptVolumeOfServiceIsKept(t *testing.T) { // 08
	for name, tc := range served {
		t.Run(name, func(t *testing.T) {
			i := fill(inventory.Options{}, nfsService(), disk("storage", named("export")), data("storage", boundTo("export")),
				disk("shop", tc.source), data("shop"))
			if kept := slices.Contains(itemsOf(i, now), "export keep HoldsKeptVolumes finalizer"); kept != tc.kept {
				t.Errorf("the disk of the server is kept: %t; items %q", kept, itemsOf(i, now))
			}
			if live := i.Live(disk("storage", named("export"))); live.Kept() != tc.kept {
				t.Errorf("a live read: %v", live)
			}
			i.Remove(nfsService())
			if items := itemsOf(i, now); !slices.Contains(items, "export delete PolicyDelete finalizer") {
				t.Errorf("items %q without the Service", items)
			}
		})
	}
}

// A snapshot of csi-driver-nfs is an archive on the server of its volume, which its handle names.
func TestDiskBelowKeptSnapshotOfServerIsKept(t *testing.T) { // 08, 34
	for policy, want := range map[string]string{"Retain": "export keep HoldsKeptVolumes finalizer",
		"Delete": "export delete PolicyDelete finalizer"} {
		of := func(u *unstructured.Unstructured) {
			u.Object["spec"].(map[string]any)["driver"] = "nfs.csi.k8s.io"
			u.Object["status"] = map[string]any{"snapshotHandle": "nfs.storage.svc.cluster.local#share#snapshot-1#pvc-1"}
		}
		i := fill(inventory.Options{}, nfsService(), disk("storage", named("export")), data("storage", boundTo("export")),
			contentWith(policy, of))
		if items := itemsOf(i, now); !slices.Contains(items, want) {
			t.Errorf("%s: items %q, want %q", policy, items, want)
		}
	}
}

// The last write of a kept volume is on the disk of its server: its pods end before the server does, in whichever namespace.
func TestServerOfKeptVolumeEndsAfterItsPods(t *testing.T) { // 02, 08
	for _, writer := range []string{"shop", "storage", metav1.NamespaceSystem} {
		i := fill(inventory.Options{}, nfsService(), disk(writer, ofNFS("10.0.0.5"), marked), data(writer), user(writer, "data"),
			disk("storage", named("export"), marked), data("storage", boundTo("export")), user("storage", "of-export"))
		for _, want := range []string{"Delete Pod pod-of-data", "Delete Pod pod-of-of-export"} {
			if got := stepsOf(i, now); !slices.Equal(got, []string{want}) {
				t.Errorf("writer in %s: steps %q, want %q", writer, got, want)
			}
			i.Remove(user(writer, "data"))
		}
	}
}

// Without the load balancer of its server no pod writes to a volume to its end, and no CSI driver deletes one.
func TestBalancerOfServerEndsAfterItsVolumes(t *testing.T) { // 01, 02, 30
	balancer := with(nfsService(), []edit[v1.Service]{func(s *v1.Service) {
		s.Spec.Type, s.Status = v1.ServiceTypeLoadBalancer, service().Status
	}})
	kept := disk("shop", ofNFS("192.0.2.1"), marked)
	used := fill(inventory.Options{}, balancer, kept, data("shop"), user("shop", "data"))
	deleted := fill(inventory.Options{}, balancer, disk("shop", ofAttribute("server", "192.0.2.1"), func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimDelete
	}), data("shop"))
	for want, i := range map[string]*inventory.Inventory{"Delete Pod pod-of-data": used, "Delete PersistentVolumeClaim data": deleted} {
		if got := stepsOf(i, now); !slices.Equal(got, []string{want}) {
			t.Errorf("steps %q, want %q", got, want)
		}
	}
	used.Remove(user("shop", "data"))
	deleted.Remove(data("shop"))
	deleted.Remove(disk("shop"))
	unused := fill(inventory.Options{}, balancer, disk("shop", marked), data("shop"))
	stuck := fill(inventory.Options{}, balancer, kept, data("shop"), user("shop", "data"))
	stuck.SetStuck(map[types.UID]bool{"pod-of-data": true})
	for _, i := range []*inventory.Inventory{used, deleted, unused, stuck} {
		if got := stepsOf(i, now); len(got) == 0 || got[0] != "Delete Service nfs" {
			t.Errorf("steps %q", got)
		}
	}
}

// Rook runs the CSI driver in the namespace of its operator, and each Ceph cluster in one of its own.
func TestCephClusterIsWhereItsVolumesSay(t *testing.T) { // 08, 26
	const driver = "rook.rbd.csi.ceph.com"
	rbd := func(cluster string) edit[v1.PersistentVolume] {
		return func(v *v1.PersistentVolume) {
			v.Spec.CSI.Driver = driver
			v.Spec.CSI.VolumeHandle = fmt.Sprintf("0001-%04x-%s-0000000000000002-8d0ba728-0e17-11eb-a680-ce6eecc894de", len(cluster), cluster)
		}
	}
	snap := contentWith("Retain", func(u *unstructured.Unstructured) {
		u.Object["spec"].(map[string]any)["driver"] = driver
		u.Object["status"] = map[string]any{"snapshotHandle": "0001-0006-ceph-a-0000000000000002-8d0ba728-0e17-11eb-a680-ce6eecc894de"}
	})
	short := func(v *v1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "0001-0fff-ceph-a" }
	secret := func(v *v1.PersistentVolume) {
		v.Spec.CSI.NodeStageSecretRef = &v1.SecretReference{Namespace: "ceph-a", Name: "rook-csi-rbd-node"}
	}
	marks, ends := []string{"Mark PersistentVolume osd", "Delete Pod pod-of-data"}, []string{"Delete Pod pod-of-of-osd", "Delete Pod pod-of-data"}
	for name, tc := range map[string]struct {
		object any
		kept   bool
		steps  []string
	}{
		"kept volume":          {disk("shop", rbd("ceph-a"), marked), true, marks},
		"kept snapshot":        {snap, true, marks},
		"RADOS namespace":      {disk("shop", rbd("80fc4f4bacc064be641633e6ed25ba7e"), secret, marked), true, marks},
		"static":               {disk("shop", rbd("ceph-a"), short, secret, marked), true, marks},
		"volume to be deleted": {disk("shop", rbd("ceph-a")), false, []string{"Delete Pod pod-of-data"}},
		"of another cluster":   {disk("shop", rbd("ceph-b"), marked), false, ends},
		"of another driver":    {disk("shop", rbd("ceph-a"), of("ebs"), marked), false, ends},
		"of an unknown form":   {disk("shop", rbd("ceph-a"), short, marked), false, ends},
		"without an operator":  {disk("shop", rbd("prod"), of("rbd.csi.ceph.com"), secret, marked), false, ends},
	} {
		t.Run(name, func(t *testing.T) {
			i := fill(inventory.Options{}, csi("operator", driver), csi("kube-system", "ebs"), data("shop"), user("shop", "data"),
				disk("ceph-a", named("osd")), data("ceph-a", boundTo("osd")), user("ceph-a", "of-osd"), tc.object)
			if kept := slices.Contains(itemsOf(i, now), "osd keep HoldsKeptVolumes finalizer"); kept != tc.kept {
				t.Errorf("the disk of Ceph is kept: %t; items %q", kept, itemsOf(i, now))
			}
			if got := stepsOf(i, now); !slices.Equal(got, tc.steps) {
				t.Errorf("steps %q, want %q", got, tc.steps)
			}
		})
	}
}
