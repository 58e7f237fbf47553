package situations

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// advised are situations whose next step was dangerous or no help.
var advised = []situation{
	{
		number: "71", name: "a new claim names the deleted volume, whose provisioner is gone", alone: true,
		build: func(r *place) []string {
			volume := r.withoutProvisioner()
			_, err := r.Client.CoreV1().PersistentVolumeClaims(r.Namespace).Create(r.Ctx, &v1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Name: "claim"},
				Spec: v1.PersistentVolumeClaimSpec{
					VolumeName: volume, StorageClassName: ptr.To(""), AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
					Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Mi")}},
				},
			}, metav1.CreateOptions{})
			r.Must(err, "create claim")
			return []string{"pv/" + volume}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.DriverMissing}, next: "Retain", absent: "install",
		evidence: []string{"spec.volumeName of claim"},
		step: func(r *place) {
			r.SetPolicy(r.Namespace+"-disk", v1.PersistentVolumeReclaimRetain)
			r.reclaim(r.Namespace + "-disk")
		},
	},
	{
		number: "71b", name: "the provisioner of one of several drivers is gone", alone: true,
		build:   func(r *place) []string { return []string{"pv/" + r.withoutProvisioner()} },
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.DriverMissing}, next: "kubectl get csidriver",
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "72", name: "twelve finished pods use the claim",
		programs: loops,
		build: func(r *place) []string {
			r.CreateClaim("claim", r.Namespace)
			for i := range 12 {
				pod := r.podWith("node", "claim")
				pod.Name = fmt.Sprintf("pod-%d", i)
				_, err := r.Client.CoreV1().Pods(r.Namespace).Create(r.Ctx, pod, metav1.CreateOptions{})
				r.Must(err, "create pod")
				r.setPodPhase(pod.Name, v1.PodSucceeded)
			}
			r.DeleteClaim("claim")
			return []string{"pvc/claim"}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.PodUsesClaim}, next: "delete pods pod-0 pod-1 ",
		evidence: []string{"12 pods that have finished"},
		step: func(r *place) {
			for i := range 12 {
				r.endPod(fmt.Sprintf("pod-%d", i))
			}
		},
	},
	{
		number: "73", name: "a Secret has a finalizer that nobody knows",
		build: func(r *place) []string {
			_, err := r.Client.CoreV1().Secrets(r.Namespace).Create(r.Ctx, &v1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "password", Finalizers: []string{strangerFinalizer}},
				StringData: map[string]string{"password": "x"},
			}, metav1.CreateOptions{})
			r.Must(err, "create Secret")
			return r.deleteOf(secrets, r.Namespace, "password")
		},
		verdict: blocker.Unknown, roots: []blocker.Reason{blocker.UnknownFinalizer}, next: "describe secrets password",
		absent: "-o yaml",
		step:   func(r *place) { r.strip(secrets, r.Namespace, "password") },
	},
}

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// withoutProvisioner returns the name of a deleted volume whose provisioner is gone for an hour.
func (r *place) withoutProvisioner() string {
	r.T.Helper()
	volume := r.releasedOnly()
	r.DeleteVolume(volume.Name)
	r.createLease(r.Namespace, r.leaseName(), "controller-0", time.Hour, 15*time.Second)
	return volume.Name
}
