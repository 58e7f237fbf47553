package situations

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/blocker"
	"github.com/exeunt-io/exeunt/pkg/why/families"
)

// healthyOperators returns the healthy controls with operators and sidecars: none of them
// may be called stuck.
func healthyOperators() []situation {
	return slices.Concat(operatorsThatRun(), replicasOfOperators(), operatorsOutOfSight())
}

var acts = []blocker.Reason{blocker.ControllerActs}

// operatorsThatRun returns operators and sidecars that run and report no error.
func operatorsThatRun() []situation {
	return []situation{
		{
			number: "c", name: "the operator runs without leader election",
			build: func(r *place) []string {
				r.createDeployment(r.Namespace, "prometheus-operator",
					"quay.example/prometheus-operator/prometheus-operator:v0.85.0", 1, 1)
				return prometheus.createAndDelete(r)
			},
			verdict: blocker.Waiting, roots: acts, next: "logs deployment/prometheus-operator", step: prometheus.finish,
		},
		{
			number: "e", name: "an error is two hours old, with a success since",
			build: func(r *place) []string {
				r.createDeployment(r.Namespace, "cert-manager", "quay.example/jetstack/cert-manager-controller:v1.18.0", 1, 1)
				args := challenge.createAndDelete(r)
				object := r.live(challenge.resource(), "object")
				r.createWarning(object, "CleanUpError", "the DNS provider does not answer", 2*time.Hour, "cert-manager-challenges")
				r.createEvent(object, v1.EventTypeNormal, "Presented", "Presented challenge", time.Hour, "cert-manager-challenges")
				return args
			},
			verdict: blocker.Waiting, roots: acts, next: "logs deployment/cert-manager", step: challenge.finish,
		},
		{
			number: "l", name: "the sidecar is pinned by digest",
			build: func(r *place) []string {
				const image = "registry.example/sig-storage/csi-attacher@sha256:f9b7bdc4a5c0c1d6b8a8ee5c6c1c8f1e7f5d2d6c0b4c3b2a1f0e9d8c7b6a5f4e"
				driver := r.Namespace + ".csi.example"
				r.createNode(r.Namespace, v1.ConditionTrue, 0)
				r.createDeployment(r.Namespace, "csi-controller", image, 1, 1, withEnv("DRIVER_NAME", driver))
				return r.deleteAttachment(driver)
			},
			verdict: blocker.Waiting, step: (*place).finishAttachment,
		},
	}
}

// replicasOfOperators returns operators of which not all replicas are ready.
func replicasOfOperators() []situation {
	return []situation{
		{
			number: "f", name: "one replica of two is not ready",
			build: func(r *place) []string {
				deployment := r.createDeployment(r.Namespace, "kueue", "registry.example/kueue/kueue:v0.12", 2, 1, withoutPods)
				r.createReplica(deployment, isReady)
				r.createReplica(deployment, waits("CrashLoopBackOff", "back-off 5m0s restarting failed container"))
				return kueueFlavor.createAndDelete(r)
			},
			verdict: blocker.Waiting, roots: acts, next: "logs deployment/kueue", step: kueueFlavor.finish,
		},
		{
			number: "g", name: "the operator is being updated",
			build: func(r *place) []string {
				deployment := r.createDeployment(r.Namespace, "virt", "quay.example/kubevirt/virt-controller:v1.5.0", 2, 0,
					withoutPods)
				r.createReplica(deployment, notReady)
				r.createReplica(deployment, notReady)
				old := r.createReplica(deployment, isReady)
				r.Must(r.Client.CoreV1().Pods(r.Namespace).Delete(r.Ctx, old.Name,
					metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](600)}), "delete old pod")
				r.createLease(r.Namespace, "virt-controller", old.Name, 40*time.Second, 15*time.Second)
				return machine.createAndDelete(r)
			},
			verdict: blocker.Waiting, roots: acts, step: machine.finish,
		},
	}
}

// operatorsOutOfSight returns operators of which the user may not see everything.
func operatorsOutOfSight() []situation {
	return []situation{
		{
			number: "i", name: "the user may not list pods",
			build: func(r *place) []string {
				deployment := r.createDeployment(r.Namespace, "vm", "registry.example/victoriametrics/operator:v0.60", 1, 0,
					withoutPods)
				r.createReplica(deployment, isReady) // the status of the Deployment comes later
				return append(collector.createAndDelete(r), "--as", r.createUserMissing("pods"))
			},
			verdict: blocker.Unknown, roots: []blocker.Reason{blocker.ControllerUnseen}, step: collector.finish,
		},
		{
			number: "j", name: "the leader runs elsewhere, and the user may not list Leases",
			build: func(r *place) []string {
				r.createDeployment(r.Namespace, "grafana", "registry.example/grafana-operator:v5", 0, 0)
				r.createLease(r.Namespace, "f75f3bba.integreatly.org", "grafana-elsewhere", time.Second, 15*time.Second)
				return append(dashboard.createAndDelete(r), "--as", r.createUserMissing("leases"))
			},
			verdict: blocker.Unknown, roots: []blocker.Reason{blocker.ControllerUnseen}, step: dashboard.finish,
		},
	}
}

var (
	collector = custom{"operator.victoriametrics.com", "VMAgent", "apps.victoriametrics.com/finalizer"}
	dashboard = custom{"grafana.integreatly.org", "GrafanaDashboard", "operator.grafana.com/finalizer"}
)

// createUserMissing returns a user who may read everything but the resource.
func (r *place) createUserMissing(resource string) string {
	r.T.Helper()
	for i, rule := range rights {
		if rule.Resources[0] == resource {
			return r.createUserWithout(i)
		}
	}
	r.T.Fatalf("no rule for %s", resource)
	return ""
}

// withEnv sets a variable of the container.
func withEnv(name, value string) func(*appsv1.Deployment) {
	return func(deployment *appsv1.Deployment) {
		deployment.Spec.Template.Spec.Containers[0].Env = []v1.EnvVar{{Name: name, Value: value}}
	}
}

// deleteAttachment deletes an attachment that the attacher of the driver has to end, named
// like the situation's namespace.
func (r *place) deleteAttachment(driver string) []string {
	r.T.Helper()
	attachments := r.Client.StorageV1().VolumeAttachments()
	_, err := attachments.Create(r.Ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: r.Namespace, Finalizers: []string{"external-attacher/" +
			families.SanitizedDriver(driver)}},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: driver, NodeName: r.Namespace,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("volume")},
		},
	}, metav1.CreateOptions{})
	r.Must(err, "create attachment")
	r.Must(attachments.Delete(r.Ctx, r.Namespace, metav1.DeleteOptions{}), "delete attachment")
	return []string{"volumeattachment/" + r.Namespace}
}

// finishAttachment removes the finalizer, as the attacher does.
func (r *place) finishAttachment() {
	r.T.Helper()
	_, err := r.Client.StorageV1().VolumeAttachments().Patch(r.Ctx, r.Namespace, types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	r.Must(err, "remove finalizers of attachment")
}
