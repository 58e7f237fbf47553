package storage

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// While no provisioner runs, so that only the admission policy can add the finalizer, the
// reclaim policy of a bound volume becomes Delete, then volume and claim are deleted.
func TestAdmissionPolicyAddsFinalizerWithPolicyChange(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{}, harness.Within(3*harness.Timeout))
	if !applyAdmission(s) {
		expectFinalizerAfterPolicyChange(s)
		return
	}
	s.CreateClaim("dynamic", harness.RetainClass)
	dynamic := s.AwaitBound("dynamic")
	s.CreateVolume(s.CreateStoredVolume("static"), v1.PersistentVolumeReclaimDelete,
		func(v *v1.PersistentVolume) { v.Name = s.Namespace + "-static" })
	s.AwaitVolume(s.Namespace+"-static", "is available", harness.IsAvailable)

	s.Must(s.Provisioner.Stop(s.Ctx), "stop the provisioner")
	s.ExpectEnd(s.Provisioner)
	s.CreateClaim("static", s.Namespace)
	static := s.AwaitBound("static")
	expectDeleters(s, static, finalizer.External)
	expectDeleters(s, s.SetPolicy(dynamic.Name, v1.PersistentVolumeReclaimDelete), finalizer.External)
	for _, name := range []string{"dynamic", "static"} {
		volume := map[string]*v1.PersistentVolume{"dynamic": dynamic, "static": static}[name]
		s.DeleteVolume(volume.Name)
		s.DeleteClaim(name)
		s.AwaitVolume(volume.Name, "is released and has the finalizer", func(v *v1.PersistentVolume) bool {
			return v.Status.Phase == v1.VolumeReleased && finalizer.Has(v.Finalizers, finalizer.External)
		})
	}

	again, err := s.Plane.StartProvisioner(s.Ctx, s.Driver, sandbox.Controller{Name: "provisioner-again",
		HonorReclaimPolicy: true})
	s.Must(err, "start the provisioner again")
	t.Cleanup(func() { _ = again.Stop(context.Background()) })
	for _, volume := range []*v1.PersistentVolume{dynamic, static} {
		s.AwaitVolumeGone(volume.Name)
		s.ExpectReclaimed(volume)
	}
	expectAdmission(s)
	expectNoAdmissionWithoutList(s)
}

var (
	nowhere    = v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/tmp/nowhere"}}
	ebsSource  = v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}
	diskSource = v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk"}}
)

func provisionedBy(provisioner string) map[string]string {
	return map[string]string{storage.AnnDynamicallyProvisioned: provisioner}
}

func migratedTo(plugin, driver string) map[string]string {
	return map[string]string{storage.AnnDynamicallyProvisioned: plugin, storage.AnnMigratedTo: driver}
}

var admissionCases = map[string]struct {
	change    func(*v1.PersistentVolume)
	unclaimed bool // has no claim
	want      []finalizer.Name
}{
	"listed":      {change: func(*v1.PersistentVolume) {}, want: []finalizer.Name{finalizer.External}},
	"unlisted":    {change: func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = harness.UnservedDriver }},
	"unclaimed":   {change: func(*v1.PersistentVolume) {}, unclaimed: true},
	"provisioned": {change: func(v *v1.PersistentVolume) { v.Spec.CSI.Driver, v.Annotations = unserved, provisionedBy(unserved) }, want: []finalizer.Name{finalizer.External}},
	// Its sidecar may be a csi-provisioner before v5.1, which cannot remove the finalizer.
	"provisioned-unlisted": {change: func(v *v1.PersistentVolume) {
		v.Spec.CSI.Driver, v.Annotations = harness.UnservedDriver, provisionedBy(harness.UnservedDriver)
	}},
	"copied": {change: func(v *v1.PersistentVolume) { v.Annotations = provisionedBy(harness.UnservedDriver) }},
	"migrated": {change: func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource, v.Annotations = ebsSource, migratedTo("kubernetes.io/aws-ebs", ebsDriver)
	}, want: []finalizer.Name{finalizer.External}},
	"migrated-unlisted": {change: func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource, v.Annotations = diskSource, migratedTo("kubernetes.io/gce-pd", "pd.csi.storage.gke.io")
	}},
	"host-path": {change: func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource, v.Annotations = nowhere, provisionedBy("kubernetes.io/host-path")
	}, want: []finalizer.Name{finalizer.InTree}},
	"rbd": {change: func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource, v.Annotations = nowhere, provisionedBy("kubernetes.io/rbd")
	}},
	"other-provisioner": {change: func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource, v.Annotations = nowhere, provisionedBy("example.com/nfs")
	}},
	"by-hand": {change: func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeSource = nowhere }},
}

// expectAdmission sets the policy of volumes to Delete. The admission policy must add a
// finalizer only to volumes whose deleter runs in this cluster.
func expectAdmission(s *harness.Session) {
	s.T.Helper()
	for name, tc := range admissionCases {
		own := func(v *v1.PersistentVolume) { v.Spec.StorageClassName = s.Namespace + name }
		volume := s.CreateVolume(name, v1.PersistentVolumeReclaimRetain, own, tc.change)
		s.AwaitVolume(volume.Name, "is available", harness.IsAvailable)
		if !tc.unclaimed {
			s.CreateClaim(name, s.Namespace+name)
			s.AwaitBound(name)
		}
		written := s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimDelete)
		expectDeleters(s, written, tc.want...)
		expectDeleters(s, s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimDelete), tc.want...)
	}
}

// expectNoAdmissionWithoutList deletes the list of drivers. From then on no finalizer is
// added, and no write is rejected.
func expectNoAdmissionWithoutList(s *harness.Session) {
	s.T.Helper()
	volumes := map[string]*v1.PersistentVolume{}
	for name, change := range map[string]func(*v1.PersistentVolume){
		"gone-static": func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = unserved },
		"gone-provisioned": func(v *v1.PersistentVolume) {
			v.Spec.CSI.Driver, v.Annotations = unserved, map[string]string{storage.AnnDynamicallyProvisioned: unserved}
		},
	} {
		volumes[name] = s.CreateVolume(name, v1.PersistentVolumeReclaimRetain,
			func(v *v1.PersistentVolume) { v.Spec.StorageClassName = s.Namespace + name }, change)
		s.CreateClaim(name, s.Namespace+name)
		s.AwaitBound(name)
	}
	s.Must(s.Client.CoreV1().ConfigMaps(deploy.Namespace).Delete(s.Ctx, deploy.Drivers, metav1.DeleteOptions{}),
		"delete the list of drivers")
	for _, volume := range volumes {
		err := wait.PollUntilContextCancel(s.Ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
			s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimRetain)
			written := s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimDelete)
			added := finalizer.Has(written.Finalizers, finalizer.External)
			if added { // the deletion of the list has not reached the policy yet
				removeExternal(s, written.Name)
			}
			return !added, nil
		})
		s.Must(err, "wait until the policy adds nothing to "+volume.Name)
		s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimRetain)
		expectDeleters(s, s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimDelete))
	}
}

// removeExternal removes the finalizer of a volume whose driver has no provisioner.
func removeExternal(s *harness.Session, volume string) {
	s.T.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"$deleteFromPrimitiveList/finalizers": []finalizer.Name{finalizer.External}}})
	s.Must(err, "encode finalizer")
	_, err = s.Client.CoreV1().PersistentVolumes().Patch(s.Ctx, volume, types.StrategicMergePatchType, body,
		metav1.PatchOptions{})
	s.Must(err, "remove finalizer")
}

// unserved is a driver without a provisioner: only the admission policy adds a finalizer
// to its volumes.
const unserved = "unserved.example.com"

// ebsDriver is the CSI driver to which kubernetes.io/aws-ebs is migrated.
const ebsDriver = "ebs.csi.aws.com"

// applyAdmission applies the admission policy with a list of drivers, and waits until
// both are in force. The result is false where the API server does not serve the policy.
func applyAdmission(s *harness.Session) bool {
	s.T.Helper()
	served := s.ApplyAdmission()
	body, err := json.Marshal(map[string]any{"data": map[string]string{s.Driver.DriverName: "", unserved: "",
		ebsDriver: ""}})
	s.Must(err, "encode list of drivers")
	_, err = s.Client.CoreV1().ConfigMaps(deploy.Namespace).Patch(s.Ctx, deploy.Drivers, types.MergePatchType, body,
		metav1.PatchOptions{})
	s.Must(err, "list the driver")
	if !served {
		return false
	}
	probe := s.CreateVolume("probe", v1.PersistentVolumeReclaimRetain,
		func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = unserved })
	s.CreateClaim("probe", s.Namespace)
	s.AwaitBound("probe")
	err = wait.PollUntilContextCancel(s.Ctx, 50*time.Millisecond, true, func(_ context.Context) (bool, error) {
		s.SetPolicy(probe.Name, v1.PersistentVolumeReclaimRetain)
		return finalizer.Has(s.SetPolicy(probe.Name, v1.PersistentVolumeReclaimDelete).Finalizers, finalizer.External), nil
	})
	s.Must(err, "wait until the admission policy is in force")
	return true
}

// expectFinalizerAfterPolicyChange checks what remains without the admission policy: the write
// that sets the policy adds no finalizer, the provisioner adds it soon after.
func expectFinalizerAfterPolicyChange(s *harness.Session) {
	s.T.Helper()
	unmanaged := s.CreateVolume("unmanaged", v1.PersistentVolumeReclaimRetain,
		func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = unserved })
	s.CreateClaim("unmanaged", s.Namespace)
	s.AwaitBound("unmanaged")
	expectDeleters(s, s.SetPolicy(unmanaged.Name, v1.PersistentVolumeReclaimDelete))

	s.CreateClaim("dynamic", harness.RetainClass)
	volume := s.AwaitBound("dynamic")
	s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimDelete)
	s.AwaitVolume(volume.Name, "has the finalizer",
		func(v *v1.PersistentVolume) bool { return finalizer.Has(v.Finalizers, finalizer.External) })
	s.DeleteVolume(volume.Name)
	s.DeleteClaim("dynamic")
	s.AwaitVolumeGone(volume.Name)
	s.ExpectReclaimed(volume)
}

// expectDeleters checks which of the two finalizers of programs that delete data are set.
func expectDeleters(s *harness.Session, volume *v1.PersistentVolume, want ...finalizer.Name) {
	s.T.Helper()
	var got []finalizer.Name
	for _, name := range volume.Finalizers {
		if name == string(finalizer.External) || name == string(finalizer.InTree) {
			got = append(got, finalizer.Name(name))
		}
	}
	if !slices.Equal(got, want) {
		s.T.Errorf("volume %s has the finalizers %v, want %v of the programs that delete data", volume.Name,
			volume.Finalizers, want)
	}
}
