package reclaim

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
	"github.com/exeunt-io/exeunt/internal/sandbox"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// Without the provisioner, so that nobody but the admission policy can add its
// finalizer, the policy of a bound volume turns to Delete, the volume is deleted at
// once, and then its claim.
func TestAdmissionPolicyAddsFinalizerWithPolicyChange(t *testing.T) {
	t.Parallel()
	s := harness.Own(t, harness.Setup{}, harness.Within(3*harness.Timeout))
	admit(s)
	s.CreateClaim("dynamic", harness.RetainClass)
	dynamic := s.AwaitBound("dynamic")
	s.CreateVolume(s.CreateStoredVolume("static"), v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) { v.Name = s.Namespace + "-static" })
	s.AwaitVolume(s.Namespace+"-static", "is available", harness.IsAvailable)

	s.Must(s.Provisioner.Stop(s.Ctx), "stop the provisioner")
	s.ExpectEnd(s.Provisioner)
	s.CreateClaim("static", s.Namespace)
	static := s.AwaitBound("static")
	expectHolding(s, static, finalizer.External)
	expectHolding(s, turn(s, dynamic.Name, v1.PersistentVolumeReclaimDelete), finalizer.External)
	for _, name := range []string{"dynamic", "static"} {
		volume := map[string]*v1.PersistentVolume{"dynamic": dynamic, "static": static}[name]
		s.DeleteVolume(volume.Name)
		s.DeleteClaim(name)
		s.AwaitVolume(volume.Name, "is released and held", func(v *v1.PersistentVolume) bool {
			return v.Status.Phase == v1.VolumeReleased && finalizer.Has(v.Finalizers, finalizer.External)
		})
	}

	again, err := s.Plane.StartProvisioner(s.Ctx, s.Driver, sandbox.Controller{Name: "provisioner-again", HonorReclaimPolicy: true})
	s.Must(err, "start the provisioner again")
	t.Cleanup(func() { _ = again.Stop(context.Background()) })
	for _, volume := range []*v1.PersistentVolume{dynamic, static} {
		s.AwaitVolumeGone(volume.Name)
		s.ExpectReclaimed(volume)
	}
	expectAdmission(s)
	expectNoAdmissionWithoutList(s)
}

// expectAdmission turns the policy of volumes to Delete, which gives those a
// finalizer that somebody here would take off again, and no others.
func expectAdmission(s *harness.Session) {
	s.T.Helper()
	hostPath := v1.PersistentVolumeSource{HostPath: &v1.HostPathVolumeSource{Path: "/tmp/nowhere"}}
	ebs := v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}
	disk := v1.PersistentVolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: "disk"}}
	by := func(provisioner string) map[string]string {
		return map[string]string{storage.AnnDynamicallyProvisioned: provisioner}
	}
	migrated := func(plugin, driver string) map[string]string {
		return map[string]string{storage.AnnDynamicallyProvisioned: plugin, storage.AnnMigratedTo: driver}
	}
	for name, tc := range map[string]struct {
		change func(*v1.PersistentVolume)
		free   bool // nobody claims it
		want   []finalizer.Name
	}{
		"listed":      {change: func(*v1.PersistentVolume) {}, want: []finalizer.Name{finalizer.External}},
		"unlisted":    {change: func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = harness.UnservedDriver }},
		"unclaimed":   {change: func(*v1.PersistentVolume) {}, free: true},
		"provisioned": {change: func(v *v1.PersistentVolume) { v.Spec.CSI.Driver, v.Annotations = unserved, by(unserved) }, want: []finalizer.Name{finalizer.External}},
		// Its sidecar may be a csi-provisioner before v5.1, which cannot remove the finalizer.
		"provisioned-unlisted": {change: func(v *v1.PersistentVolume) {
			v.Spec.CSI.Driver, v.Annotations = harness.UnservedDriver, by(harness.UnservedDriver)
		}},
		"copied": {change: func(v *v1.PersistentVolume) { v.Annotations = by(harness.UnservedDriver) }},
		"migrated": {change: func(v *v1.PersistentVolume) {
			v.Spec.PersistentVolumeSource, v.Annotations = ebs, migrated("kubernetes.io/aws-ebs", ebsDriver)
		}, want: []finalizer.Name{finalizer.External}},
		"migrated-unlisted": {change: func(v *v1.PersistentVolume) {
			v.Spec.PersistentVolumeSource, v.Annotations = disk, migrated("kubernetes.io/gce-pd", "pd.csi.storage.gke.io")
		}},
		"host-path": {change: func(v *v1.PersistentVolume) {
			v.Spec.PersistentVolumeSource, v.Annotations = hostPath, by("kubernetes.io/host-path")
		}, want: []finalizer.Name{finalizer.InTree}},
		"rbd": {change: func(v *v1.PersistentVolume) {
			v.Spec.PersistentVolumeSource, v.Annotations = hostPath, by("kubernetes.io/rbd")
		}},
		"other-provisioner": {change: func(v *v1.PersistentVolume) {
			v.Spec.PersistentVolumeSource, v.Annotations = hostPath, by("example.com/nfs")
		}},
		"by-hand": {change: func(v *v1.PersistentVolume) { v.Spec.PersistentVolumeSource = hostPath }},
	} {
		own := func(v *v1.PersistentVolume) { v.Spec.StorageClassName = s.Namespace + name }
		volume := s.CreateVolume(name, v1.PersistentVolumeReclaimRetain, own, tc.change)
		s.AwaitVolume(volume.Name, "is available", harness.IsAvailable)
		if !tc.free {
			s.CreateClaim(name, s.Namespace+name)
			s.AwaitBound(name)
		}
		turned := turn(s, volume.Name, v1.PersistentVolumeReclaimDelete)
		expectHolding(s, turned, tc.want...)
		expectHolding(s, turn(s, volume.Name, v1.PersistentVolumeReclaimDelete), tc.want...)
	}
}

// expectNoAdmissionWithoutList deletes the list of drivers: from then on volumes are
// written as if there were no policy, and no write is refused.
func expectNoAdmissionWithoutList(s *harness.Session) {
	s.T.Helper()
	volumes := map[string]*v1.PersistentVolume{}
	for name, change := range map[string]func(*v1.PersistentVolume){
		"gone-static": func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = unserved },
		"gone-provisioned": func(v *v1.PersistentVolume) {
			v.Spec.CSI.Driver, v.Annotations = unserved, map[string]string{storage.AnnDynamicallyProvisioned: unserved}
		},
	} {
		volumes[name] = s.CreateVolume(name, v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) { v.Spec.StorageClassName = s.Namespace + name }, change)
		s.CreateClaim(name, s.Namespace+name)
		s.AwaitBound(name)
	}
	s.Must(s.Client.CoreV1().ConfigMaps(deploy.Namespace).Delete(s.Ctx, deploy.Drivers, metav1.DeleteOptions{}), "delete the list of drivers")
	for _, volume := range volumes {
		err := wait.PollUntilContextCancel(s.Ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
			turn(s, volume.Name, v1.PersistentVolumeReclaimRetain)
			turned := turn(s, volume.Name, v1.PersistentVolumeReclaimDelete)
			added := finalizer.Has(turned.Finalizers, finalizer.External)
			if added { // the policy has not seen yet that the list is gone
				removeExternal(s, turned.Name)
			}
			return !added, nil
		})
		s.Must(err, "wait until the policy adds nothing to "+volume.Name)
		turn(s, volume.Name, v1.PersistentVolumeReclaimRetain)
		expectHolding(s, turn(s, volume.Name, v1.PersistentVolumeReclaimDelete))
	}
}

// removeExternal takes off the finalizer of a volume whose driver nobody serves.
func removeExternal(s *harness.Session, volume string) {
	s.T.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"$deleteFromPrimitiveList/finalizers": []finalizer.Name{finalizer.External}}})
	s.Must(err, "encode finalizer")
	_, err = s.Client.CoreV1().PersistentVolumes().Patch(s.Ctx, volume, types.StrategicMergePatchType, body, metav1.PatchOptions{})
	s.Must(err, "remove finalizer")
}

// unserved is a driver that no provisioner is beside: nobody but the admission policy
// puts a finalizer on its volumes.
const unserved = "unserved.example.com"

// ebsDriver is the driver that volumes of kubernetes.io/aws-ebs are migrated to.
const ebsDriver = "ebs.csi.aws.com"

// admit applies the admission policy, lists the driver, and waits until the policy
// acts upon the list.
func admit(s *harness.Session) {
	s.T.Helper()
	s.Must(sandbox.Apply(s.Ctx, s.Plane.RESTConfig(), deploy.Admission), "apply the admission policy")
	body, err := json.Marshal(map[string]any{"data": map[string]string{s.Driver.DriverName: "", unserved: "", ebsDriver: ""}})
	s.Must(err, "encode list of drivers")
	_, err = s.Client.CoreV1().ConfigMaps(deploy.Namespace).Patch(s.Ctx, deploy.Drivers, types.MergePatchType, body, metav1.PatchOptions{})
	s.Must(err, "list the driver")
	probe := s.CreateVolume("probe", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = unserved })
	s.CreateClaim("probe", s.Namespace)
	s.AwaitBound("probe")
	err = wait.PollUntilContextCancel(s.Ctx, 50*time.Millisecond, true, func(_ context.Context) (bool, error) {
		turn(s, probe.Name, v1.PersistentVolumeReclaimRetain)
		return finalizer.Has(turn(s, probe.Name, v1.PersistentVolumeReclaimDelete).Finalizers, finalizer.External), nil
	})
	s.Must(err, "wait until the admission policy acts")
}

// turn sets the reclaim policy and returns what that very write has made.
func turn(s *harness.Session, volume string, policy v1.PersistentVolumeReclaimPolicy) *v1.PersistentVolume {
	s.T.Helper()
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"persistentVolumeReclaimPolicy": policy}})
	s.Must(err, "encode policy")
	turned, err := s.Client.CoreV1().PersistentVolumes().Patch(s.Ctx, volume, types.MergePatchType, body, metav1.PatchOptions{})
	s.Must(err, "turn policy")
	return turned
}

// expectHolding wants exactly these of the two finalizers of those who delete data.
func expectHolding(s *harness.Session, volume *v1.PersistentVolume, want ...finalizer.Name) {
	s.T.Helper()
	var got []finalizer.Name
	for _, name := range volume.Finalizers {
		if name == string(finalizer.External) || name == string(finalizer.InTree) {
			got = append(got, finalizer.Name(name))
		}
	}
	if !slices.Equal(got, want) {
		s.T.Errorf("volume %s has the finalizers %v, want %v of those who delete data", volume.Name, volume.Finalizers, want)
	}
}
