package situations

import (
	"time"

	"google.golang.org/grpc/codes"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// deletingVolumes are the situations of PersistentVolumes whose driver deletes, or should.
var deletingVolumes = []situation{
	{
		number: "01", name: "a deleted volume is bound to a living claim",
		programs: &harness.Setup{},
		build: func(r *place) []string {
			r.CreateClaim("claim", harness.DeleteClass)
			volume := r.AwaitBound("claim")
			r.DeleteVolume(volume.Name)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.ClaimExists}, next: "delete pvc claim",
		step: func(r *place) { r.DeleteClaim("claim") },
	},
	{
		number: "02", name: "the driver deletes the volume and takes long",
		programs: loops,
		build: func(r *place) []string {
			r.serve()
			r.driver.Pause()
			volume := r.deletePVThenClaim(func(volume *v1.PersistentVolume) {
				r.Must(r.driver.Inject([]csimock.Fault{{Method: "DeleteVolume", Volume: harness.Handle(volume),
					Latency: time.Millisecond, Times: 1}}), "inject fault")
			})
			<-r.driver.Seen("faulted", harness.Call{Method: "DeleteVolume", Volume: harness.Handle(volume)})
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.DriverDeletes}, next: "wait",
		step: func(r *place) { r.driver.Resume() },
	},
	{
		number: "03", name: "the driver refuses to delete the volume",
		programs: loops,
		build: func(r *place) []string {
			r.serve()
			volume := r.deletePVThenClaim(func(volume *v1.PersistentVolume) {
				r.Must(r.driver.Inject([]csimock.Fault{{Method: "DeleteVolume", Volume: harness.Handle(volume),
					Code: codes.FailedPrecondition}}), "inject fault")
			})
			r.AwaitEvent(volume, "VolumeFailedDelete")
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.DriverRefuses}, next: "describe pv",
		step: func(r *place) { r.driver.Server.ClearFaults() },
	},
	{
		number: "04", name: "the driver is uninstalled",
		build: func(r *place) []string {
			volume := r.released()
			r.createDeployment(r.Namespace, "controller", "example.com/csi-provisioner:v6.3.0", 0, 0)
			r.createLease(r.Namespace, r.leaseName(), "controller-0", time.Hour, 15*time.Second)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.DriverMissing},
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "05", name: "neither pod nor Lease of the provisioner is visible", alone: true,
		build:   func(r *place) []string { return []string{"pv/" + r.released().Name} },
		verdict: blocker.Unknown, roots: []blocker.Reason{blocker.ControllerUnseen},
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "10", name: "two volumes name one disk",
		programs: loops,
		build: func(r *place) []string {
			r.serve()
			volume := r.deletePVThenClaim(func(volume *v1.PersistentVolume) {
				r.CreateVolume("other", v1.PersistentVolumeReclaimDelete, func(other *v1.PersistentVolume) {
					other.Spec.CSI = volume.Spec.CSI.DeepCopy()
					other.Spec.CSI.VolumeAttributes = nil
				})
			})
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.HandleShared}, next: "-other",
		step: func(r *place) { r.DeleteVolume(r.Namespace + "-other") },
	},
	{
		number: "11", name: "the provisioner is older than the finalizer",
		build: func(r *place) []string {
			volume := r.released()
			r.createSidecar("csi-provisioner:v3.0.0")
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.FeatureOff}, next: "v5.0",
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "11g", name: "the gate of the provisioner is off",
		build: func(r *place) []string {
			volume := r.released()
			r.createSidecar("csi-provisioner@sha256:"+digest, "--feature-gates=HonorPVReclaimPolicy=false")
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.FeatureOff}, next: "HonorPVReclaimPolicy",
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "11l", name: "the image of the provisioner has a digest and no tag",
		build: func(r *place) []string {
			volume := r.released()
			r.createSidecar("csi-provisioner@sha256:" + digest)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.DriverDeletes},
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "15", name: "the in-tree plugin of a Failed volume is missing",
		build: func(r *place) []string {
			volume := r.releasedOnly(func(volume *v1.PersistentVolume) {
				volume.Spec.CSI = nil
				volume.Spec.FlexVolume = &v1.FlexPersistentVolumeSource{Driver: "example.com/flex"}
				volume.Finalizers = []string{string(finalizer.InTree)}
				volume.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "kubernetes.io/flex"}
			})
			r.setPhase(volume.Name, v1.VolumeFailed, "no volume plugin matched name: kubernetes.io/flex")
			r.DeleteVolume(volume.Name)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.DriverMissing}, next: "Retain",
		step: func(r *place) {
			r.SetPolicy(r.Namespace+"-disk", v1.PersistentVolumeReclaimRetain)
			r.reclaim(r.Namespace + "-disk") // pv-controller does for Retain
		},
	},
	{
		number: "16", name: "a released volume has the policy Retain",
		build: func(r *place) []string {
			volume := r.releasedOnly(func(volume *v1.PersistentVolume) {
				volume.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
				volume.Finalizers = nil
			})
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.None, roots: []blocker.Reason{blocker.PolicyRetain}, next: "delete pv",
		step: func(r *place) { r.DeleteVolume(r.Namespace + "-disk") },
	},
	{
		number: "17", name: "the driver refuses, and nobody deleted the PersistentVolume",
		programs: loops,
		build: func(r *place) []string {
			r.serve()
			r.CreateClaim("claim", r.Namespace)
			volume := r.AwaitBound("claim")
			r.Must(r.driver.Inject([]csimock.Fault{{Method: "DeleteVolume", Code: codes.Internal}}), "inject fault")
			r.DeleteClaim("claim")
			r.AwaitEvent(volume, "VolumeFailedDelete")
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.DriverRefuses}, next: "describe pv",
		step: func(r *place) { r.driver.Server.ClearFaults() },
	},
}

// digest is the digest of an image.
const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// createSidecar creates a ready Deployment of the situation's driver with the sidecar, and the
// Lease of the sidecar.
func (r *place) createSidecar(image string, args ...string) {
	r.T.Helper()
	r.createDeployment(r.Namespace, "controller", "example.com/"+image, 1, 1, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Args = args
		d.Spec.Replicas = ptr.To[int32](1)
	})
	r.createLease(r.Namespace, r.leaseName(), "controller-0", 0, day)
}
