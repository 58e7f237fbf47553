package e2e

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
)

// Without the provisioner, so that nobody but the admission policy can add its
// finalizer, the policy of a bound volume turns to Delete, the volume is deleted at
// once, and then its claim.
func TestTheFinalizerComesInTheWriteThatMakesItNecessary(t *testing.T) {
	t.Parallel()
	s := enterFor(t, shared(t, setup{honor: true, alone: "admission"}), 3*patience)
	s.admit()
	s.createClaim("dynamic", retainClass)
	dynamic := s.awaitBound("dynamic")
	s.createVolume(s.makeVolume("static"), v1.PersistentVolumeReclaimDelete, func(v *v1.PersistentVolume) { v.Name = s.namespace + "-static" })
	s.awaitVolume(s.namespace+"-static", "is available", isAvailable)

	s.must(s.provisioner.Stop(s.ctx), "stop the provisioner")
	s.forget(s.provisioner)
	s.createClaim("static", s.namespace)
	static := s.awaitBound("static")
	s.expectHolding(static, finalizer.External)
	s.expectHolding(s.turn(dynamic.Name, v1.PersistentVolumeReclaimDelete), finalizer.External)
	for _, name := range []string{"dynamic", "static"} {
		volume := map[string]*v1.PersistentVolume{"dynamic": dynamic, "static": static}[name]
		s.deleteVolume(volume.Name)
		s.deleteClaim(name)
		s.awaitVolume(volume.Name, "is released and held", func(v *v1.PersistentVolume) bool {
			return v.Status.Phase == v1.VolumeReleased && finalizer.Has(v.Finalizers, finalizer.External)
		})
	}

	again, err := s.plane.StartProvisioner(s.ctx, s.driver, sandbox.Controller{Name: "provisioner-again", HonorReclaimPolicy: true})
	s.must(err, "start the provisioner again")
	t.Cleanup(func() { _ = again.Stop(context.Background()) })
	for _, volume := range []*v1.PersistentVolume{dynamic, static} {
		s.awaitVolumeGone(volume.Name)
		s.expectReclaimed(volume)
	}
	s.expectAdmission()
	s.expectNoAdmissionWithoutList()
}

// expectAdmission turns the policy of volumes to Delete, which gives those a
// finalizer that somebody here would take off again, and no others.
func (s *scene) expectAdmission() {
	s.t.Helper()
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
		"unlisted":    {change: func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = foreign }},
		"unclaimed":   {change: func(*v1.PersistentVolume) {}, free: true},
		"provisioned": {change: func(v *v1.PersistentVolume) { v.Spec.CSI.Driver, v.Annotations = unserved, by(unserved) }, want: []finalizer.Name{finalizer.External}},
		// Its sidecar may be a csi-provisioner before v5.1, which cannot remove the finalizer.
		"provisioned-unlisted": {change: func(v *v1.PersistentVolume) { v.Spec.CSI.Driver, v.Annotations = foreign, by(foreign) }},
		"copied":               {change: func(v *v1.PersistentVolume) { v.Annotations = by(foreign) }},
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
		own := func(v *v1.PersistentVolume) { v.Spec.StorageClassName = s.namespace + name }
		volume := s.createVolume(name, v1.PersistentVolumeReclaimRetain, own, tc.change)
		s.awaitVolume(volume.Name, "is available", isAvailable)
		if !tc.free {
			s.createClaim(name, s.namespace+name)
			s.awaitBound(name)
		}
		turned := s.turn(volume.Name, v1.PersistentVolumeReclaimDelete)
		s.expectHolding(turned, tc.want...)
		s.expectHolding(s.turn(volume.Name, v1.PersistentVolumeReclaimDelete), tc.want...)
	}
}

// expectNoAdmissionWithoutList deletes the list of drivers: from then on volumes are
// written as if there were no policy, and no write is refused.
func (s *scene) expectNoAdmissionWithoutList() {
	s.t.Helper()
	volumes := map[string]*v1.PersistentVolume{}
	for name, change := range map[string]func(*v1.PersistentVolume){
		"gone-static": func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = unserved },
		"gone-provisioned": func(v *v1.PersistentVolume) {
			v.Spec.CSI.Driver, v.Annotations = unserved, map[string]string{storage.AnnDynamicallyProvisioned: unserved}
		},
	} {
		volumes[name] = s.createVolume(name, v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) { v.Spec.StorageClassName = s.namespace + name }, change)
		s.createClaim(name, s.namespace+name)
		s.awaitBound(name)
	}
	s.must(s.client.CoreV1().ConfigMaps(deploy.Namespace).Delete(s.ctx, deploy.Drivers, metav1.DeleteOptions{}), "delete the list of drivers")
	for _, volume := range volumes {
		err := wait.PollUntilContextCancel(s.ctx, 50*time.Millisecond, true, func(context.Context) (bool, error) {
			s.turn(volume.Name, v1.PersistentVolumeReclaimRetain)
			turned := s.turn(volume.Name, v1.PersistentVolumeReclaimDelete)
			added := finalizer.Has(turned.Finalizers, finalizer.External)
			if added { // the policy has not seen yet that the list is gone
				s.removeExternal(turned.Name)
			}
			return !added, nil
		})
		s.must(err, "wait until the policy adds nothing to "+volume.Name)
		s.turn(volume.Name, v1.PersistentVolumeReclaimRetain)
		s.expectHolding(s.turn(volume.Name, v1.PersistentVolumeReclaimDelete))
	}
}

// removeExternal takes off the finalizer of a volume whose driver nobody serves.
func (s *scene) removeExternal(volume string) {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"$deleteFromPrimitiveList/finalizers": []finalizer.Name{finalizer.External}}})
	s.must(err, "encode finalizer")
	_, err = s.client.CoreV1().PersistentVolumes().Patch(s.ctx, volume, types.StrategicMergePatchType, body, metav1.PatchOptions{})
	s.must(err, "remove finalizer")
}

// unserved is a driver that no provisioner is beside: nobody but the admission policy
// puts a finalizer on its volumes.
const unserved = "unserved.example.com"

// ebsDriver is the driver that volumes of kubernetes.io/aws-ebs are migrated to.
const ebsDriver = "ebs.csi.aws.com"

// admit applies the admission policy, lists the driver, and waits until the policy
// acts upon the list.
func (s *scene) admit() {
	s.t.Helper()
	s.must(sandbox.Apply(s.ctx, s.plane.RESTConfig(), deploy.Admission), "apply the admission policy")
	body, err := json.Marshal(map[string]any{"data": map[string]string{s.driver.DriverName: "", unserved: "", ebsDriver: ""}})
	s.must(err, "encode list of drivers")
	_, err = s.client.CoreV1().ConfigMaps(deploy.Namespace).Patch(s.ctx, deploy.Drivers, types.MergePatchType, body, metav1.PatchOptions{})
	s.must(err, "list the driver")
	probe := s.createVolume("probe", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) { v.Spec.CSI.Driver = unserved })
	s.createClaim("probe", s.namespace)
	s.awaitBound("probe")
	err = wait.PollUntilContextCancel(s.ctx, 50*time.Millisecond, true, func(_ context.Context) (bool, error) {
		s.turn(probe.Name, v1.PersistentVolumeReclaimRetain)
		return finalizer.Has(s.turn(probe.Name, v1.PersistentVolumeReclaimDelete).Finalizers, finalizer.External), nil
	})
	s.must(err, "wait until the admission policy acts")
}

// turn sets the reclaim policy and returns what that very write has made.
func (s *scene) turn(volume string, policy v1.PersistentVolumeReclaimPolicy) *v1.PersistentVolume {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"persistentVolumeReclaimPolicy": policy}})
	s.must(err, "encode policy")
	turned, err := s.client.CoreV1().PersistentVolumes().Patch(s.ctx, volume, types.MergePatchType, body, metav1.PatchOptions{})
	s.must(err, "turn policy")
	return turned
}

// expectHolding wants exactly these of the two finalizers of those who delete data.
func (s *scene) expectHolding(volume *v1.PersistentVolume, want ...finalizer.Name) {
	s.t.Helper()
	var got []finalizer.Name
	for _, name := range volume.Finalizers {
		if name == string(finalizer.External) || name == string(finalizer.InTree) {
			got = append(got, finalizer.Name(name))
		}
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("volume %s has the finalizers %v, want %v of those who delete data", volume.Name, volume.Finalizers, want)
	}
}
