package situations

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/blocker"
)

// sidecarImage is the image of the sidecar, without its tag.
const sidecarImage = "registry.k8s.io/sig-storage/csi-provisioner"

// onlyProvisioners are the situations of a provisioner that does not name its driver, and has
// no Lease: the driver is the only one in the cluster.
var onlyProvisioners = []situation{
	{
		number: "02p", name: "the only provisioner serves the only driver", alone: true,
		build: func(r *place) []string {
			r.registerDriver(r.driverName())
			r.createOnlySidecar(sidecarImage+":v5.2.0", 1)
			return []string{"pv/" + r.released().Name}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.DriverDeletes},
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "04p", name: "the only provisioner wants no replica", alone: true,
		build: func(r *place) []string {
			r.registerDriver(r.driverName())
			r.createOnlySidecar(sidecarImage+":v5.2.0", 0)
			return []string{"pv/" + r.released().Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.DriverMissing}, next: "scale",
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "11p", name: "the only provisioner is older than the finalizer", alone: true,
		build: func(r *place) []string {
			r.registerDriver(r.driverName())
			r.createOnlySidecar(sidecarImage+":v3.0.0", 1)
			return []string{"pv/" + r.released().Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.FeatureOff}, next: "v5.0",
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "11q", name: "the gate of the only provisioner is off", alone: true,
		build: func(r *place) []string {
			r.registerDriver(r.driverName())
			r.createOnlySidecar(sidecarImage+":v5.2.0", 1, "--feature-gates=Topology=true,HonorPVReclaimPolicy=false")
			return []string{"pv/" + r.released().Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.FeatureOff}, next: "HonorPVReclaimPolicy",
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "11r", name: "no driver is registered, and the only provisioner is too old", alone: true,
		build: func(r *place) []string {
			r.createOnlySidecar(sidecarImage+":v3.0.0", 1)
			return []string{"pv/" + r.released().Name}
		},
		verdict: blocker.Unknown, roots: []blocker.Reason{blocker.FeatureOff},
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "11s", name: "the only provisioner leads for a driver that is not registered", alone: true,
		build: func(r *place) []string {
			r.registerDriver(r.driverName())
			r.createOnlySidecar(sidecarImage+":v3.0.0", 1)
			r.createLease("csi", "another-example-com", "plugin-7d9f8-x", 0, day)
			return []string{"pv/" + r.released().Name}
		},
		verdict: blocker.Unknown,
		step:    func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "11t", name: "the old provisioner has stopped, and another leads elsewhere", alone: true,
		build: func(r *place) []string {
			volume := r.released()
			r.createDeployment(r.Namespace, "controller", sidecarImage+":v3.0.0", 0, 0)
			r.createLease(r.Namespace, r.leaseName(), "elsewhere", 0, day)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.DriverDeletes},
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "11u", name: "the provisioner of Exeunt replaces an old one", alone: true,
		build: func(r *place) []string {
			volume := r.released()
			r.createDeployment(r.Namespace, "old", sidecarImage+":v3.0.0", 1, 1)
			r.createDeployment(r.Namespace, "new", "example.com/exeunt/provisioner:v0.1.0", 1, 1)
			r.createLease(r.Namespace, r.leaseName(), "old-7d9f8-x", 0, day)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.DriverDeletes},
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "04m", name: "the provisioner comes from a mirror and runs without elections now", alone: true,
		build: func(r *place) []string {
			volume := r.released()
			r.createDeployment(r.Namespace, "controller", "rancher/mirrored-sig-storage-csi-provisioner:v5.2.0", 1, 1)
			r.createLease(r.Namespace, r.leaseName(), "controller-0", time.Hour, 15*time.Second)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.DriverDeletes},
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "04n", name: "the provisioner of a volume that is no CSI volume wants no replica", alone: true,
		build: func(r *place) []string {
			r.leadManager()
			r.createDeployment(r.Namespace, "local-path-provisioner", "rancher/local-path-provisioner:v0.0.31", 0, 0)
			volume := r.releasedOnly(func(volume *v1.PersistentVolume) {
				volume.Spec.CSI, volume.Spec.HostPath = nil, &v1.HostPathVolumeSource{Path: "/opt/local-path/v"}
				volume.Annotations = map[string]string{"pv.kubernetes.io/provisioned-by": "rancher.io/local-path"}
				volume.Finalizers = nil
			})
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Stuck, roots: []blocker.Reason{blocker.DriverMissing},
		next: "scale deployment/local-path-provisioner", absent: "by hand",
		evidence: []string{"provisioned-by is rancher.io/local-path"},
		step:     func(r *place) { r.DeleteVolume(r.Namespace + "-disk") },
	},
	{
		number: "04i", name: "the provisioner is ready, and its leader Lease ran out two hours ago", alone: true,
		build: func(r *place) []string {
			volume := r.released()
			r.createDeployment(r.Namespace, "controller", sidecarImage+":v5.2.0", 1, 1, withArgs("--leader-election"))
			r.createLease(r.Namespace, r.leaseName(), "controller-0", 2*time.Hour, 15*time.Second)
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Unknown, roots: []blocker.Reason{blocker.ControllerUnseen}, next: "find out why no replica",
		absent:   "wait",
		evidence: []string{"no replica leads, although pods are ready"},
		step:     func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
}

// withArgs sets the arguments of the container.
func withArgs(args ...string) func(*appsv1.Deployment) {
	return func(deployment *appsv1.Deployment) {
		deployment.Spec.Template.Spec.Containers[0].Args = args
	}
}

// detachedVolumes are the situations of obstacles that have ended a moment ago.
var detachedVolumes = []situation{
	{
		number: "06d", name: "the volume was detached after the last try", alone: true,
		build: func(r *place) []string {
			volume := r.released()
			r.createSidecar("csi-provisioner:v6.3.0")
			r.createWarning(r.asObject(volume), "VolumeFailedDelete",
				"persistentvolume "+volume.Name+" is still attached to node node-1", time.Minute, r.driverName()+"_pod")
			return []string{"pv/" + volume.Name}
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.DriverDeletes},
		step: func(r *place) { r.reclaim(r.Namespace + "-disk") },
	},
	{
		number: "07d", name: "detaching takes longer than its time limit", alone: true,
		build: func(r *place) []string {
			return r.attachedVolume(func() {
				r.createNode(r.Namespace, v1.ConditionTrue, 0)
				attachment := r.attach(r.Namespace+"-disk", r.Namespace, "external-attacher/"+r.leaseName())
				r.detachFails(attachment, "rpc error: code = DeadlineExceeded desc = context deadline exceeded")
				r.Must(r.Client.StorageV1().VolumeAttachments().Delete(r.Ctx, attachment.Name, metav1.DeleteOptions{}),
					"delete VolumeAttachment")
			})
		},
		verdict: blocker.Waiting, roots: []blocker.Reason{blocker.VolumeAttached},
		step: func(r *place) { r.strip(attachments, "", "csi-"+r.Namespace); r.reclaim(r.Namespace + "-disk") },
	},
}

// registerDriver creates the CSIDriver.
func (r *place) registerDriver(name string) {
	r.T.Helper()
	_, err := r.Client.StorageV1().CSIDrivers().Create(r.Ctx,
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	r.Must(err, "create CSIDriver")
}

// createOnlySidecar creates a Deployment of a driver with the sidecar in a namespace of its
// own. Nothing in it names the driver.
func (r *place) createOnlySidecar(image string, replicas int32, args ...string) {
	r.T.Helper()
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "csi"}}
	_, err := r.Client.CoreV1().Namespaces().Create(r.Ctx, namespace, metav1.CreateOptions{})
	r.Must(err, "create namespace")
	r.createDeployment("csi", "plugin", image, replicas, replicas, func(d *appsv1.Deployment) {
		containers := &d.Spec.Template.Spec.Containers
		(*containers)[0].Args = append(strings.Fields("--csi-address=/csi/csi.sock --leader-election"), args...)
		*containers = append(*containers, v1.Container{Name: "driver", Image: "example.com/driver:v1",
			Args: []string{"--endpoint=/csi/csi.sock"}})
	})
}
