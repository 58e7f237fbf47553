package teardown

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/alive"
	core "github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/faultproxy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// refusals are what a cluster has that must not be torn down, by row and reason. Each begins after the end of the one
// before, and begin returns the kubeconfig of the command.
var refusals = []struct {
	row, reason string
	begin       func(*rig) string
	end         func(*rig)
}{
	{"33", "LeadsToAPI", func(r *rig) string {
		r.createOther("front")
		changeService(r.Session, "front", `{"status":{"loadBalancer":{"ingress":[{"ip":"127.0.0.1"}]}}}`, "status")
		return r.Plane.AdminKubeconfig
	}, func(r *rig) { deleteService(r.Session, "front") }},
	{"65, scaled to zero", "ControllerGone", func(r *rig) string { return r.deployDriver("0") }, (*rig).removeDriver},
	{"65, no node", "NoReadyNode", func(r *rig) string { return r.deployDriver("1") }, (*rig).removeDriver},
	{"65, load balancer, scaled to zero", "ControllerGone", func(r *rig) string { return r.deployBalancers("0") },
		(*rig).removeBalancers},
	{"65, load balancer, no node", "NoReadyNode", func(r *rig) string { return r.deployBalancers("1") }, (*rig).removeBalancers},
	{"66", "Unreadable", func(r *rig) string {
		return r.through(faultproxy.Config{Wrap: func(forward http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				if strings.HasSuffix(request.URL.Path, "/services") {
					http.Error(w, "etcdserver: no leader", http.StatusInternalServerError)
					return
				}
				forward.ServeHTTP(w, request)
			})
		}})
	}, func(*rig) {}},
	{"69", "ServesClusters", (*rig).serveCluster, func(r *rig) {
		r.Must(r.Client.CoreV1().RESTClient().Delete().AbsPath("/apis/cluster.x-k8s.io/v1beta1/namespaces", r.Namespace,
			"clusters", "workload").Do(r.Ctx).Error(), "delete Cluster")
	}},
}

// through returns the kubeconfig of the administrator through a proxy.
func (r *rig) through(config faultproxy.Config) string {
	r.T.Helper()
	_, file, err := harness.StartFaultProxy(r.T, r.Plane.AdminKubeconfig, config)
	r.Must(err, "start proxy")
	return file
}

// deployDriver creates a Deployment of the CSI driver.
func (r *rig) deployDriver(replicas string) string {
	r.T.Helper()
	return r.deploy("csi-controller", "{name: csi-provisioner, image: registry.k8s.io/sig-storage/csi-provisioner:v5.0.0, "+
		"args: [--driver-name="+r.Driver.DriverName+"]}", replicas)
}

func (r *rig) removeDriver() {
	r.T.Helper()
	r.undeploy("csi-controller")
}

// deployBalancers creates a Service with a load balancer, and the Deployment of what has to delete it.
func (r *rig) deployBalancers(replicas string) string {
	r.T.Helper()
	r.createOther("balanced")
	changeService(r.Session, "balanced", `{"metadata":{"finalizers":["service.k8s.aws/resources"]}}`)
	return r.deploy("aws-load-balancer-controller", "{name: controller, image: "+
		"public.ecr.aws/eks/aws-load-balancer-controller:v2.13.0}", replicas)
}

func (r *rig) removeBalancers() {
	r.T.Helper()
	changeService(r.Session, "balanced", `{"metadata":{"finalizers":null}}`)
	deleteService(r.Session, "balanced")
	r.undeploy("aws-load-balancer-controller")
}

// deploy creates a Deployment in a cluster without a node.
func (r *rig) deploy(name, container, replicas string) string {
	r.T.Helper()
	r.Must(sandbox.ApplyYAML(r.Ctx, r.Plane.RESTConfig(), []byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: `+name+`, namespace: kube-system}
spec:
  replicas: `+replicas+`
  selector: {matchLabels: {app.kubernetes.io/name: `+name+`}}
  template:
    metadata: {labels: {app.kubernetes.io/name: `+name+`}}
    spec: {containers: [`+container+`]}
`)), "create Deployment")
	return r.Plane.AdminKubeconfig
}

func (r *rig) undeploy(name string) {
	r.T.Helper()
	r.Must(r.Client.AppsV1().Deployments(metav1.NamespaceSystem).Delete(r.Ctx, name, metav1.DeleteOptions{}),
		"delete Deployment")
}

// serveCluster creates the kind Cluster of Cluster API, and one.
func (r *rig) serveCluster() string {
	r.T.Helper()
	r.Must(sandbox.ApplyYAML(r.Ctx, r.Plane.RESTConfig(), []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusters.cluster.x-k8s.io, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: cluster.x-k8s.io
  scope: Namespaced
  names: {plural: clusters, singular: cluster, kind: Cluster}
  versions:
  - {name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`)), "define Cluster")
	r.Until("a Cluster is created", func() bool {
		return sandbox.ApplyYAML(r.Ctx, r.Plane.RESTConfig(), []byte(`
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: workload, namespace: `+r.Namespace+`}
`)) == nil
	})
	return r.Plane.AdminKubeconfig
}

// written returns the writes of the command since, as "verb resource/name". Questions for rights write nothing.
func (r *rig) written(since int) []string {
	r.T.Helper()
	var all []string
	for _, e := range r.auditedSince(since) {
		if e.Writes() && strings.HasPrefix(e.UserAgent, "exeunt") && e.Resource != "selfsubjectaccessreviews" {
			all = append(all, e.Verb+" "+strings.TrimSuffix(e.Resource+"/"+e.Subresource, "/")+" "+e.Name)
		}
	}
	return all
}

func (r *rig) auditedSince(since int) []sandbox.Event {
	r.T.Helper()
	events, err := sandbox.ReadAudit(r.Plane.AuditLog)
	r.Must(err, "read audit log")
	return events[since:]
}

// Rows 33, 65, 66 and 69: exit code 4, and nothing is written, not even the label of --preserve. Row 09: a warning.
func TestRefusedClusterIsLeftAsItWas(t *testing.T) {
	r := newRig(t, stock)
	goes, wanted := r.addDynamic("data", harness.DeleteClass), r.addDynamic("wanted", harness.DeleteClass)
	preserve := "--preserve=pvc/" + r.Namespace + "/wanted"
	for _, refusal := range refusals {
		since := len(r.auditedSince(0))
		e := r.command(refusal.begin(r), "--confirm="+r.id(), preserve, "-o", "json")
		if e.code != 4 || !hasProblem(r.document(e), refusal.reason, true) {
			t.Errorf("row %s: exit code %d, problems %+v, want 4 and %s", refusal.row, e.code, r.document(e).Problems, refusal.reason)
		}
		if written := r.written(since); len(written) > 0 {
			t.Errorf("row %s: the command wrote %q", refusal.row, written)
		}
		refusal.end(r)
	}
	local := r.addLocal()
	if plan := r.document(r.admin(0, preserve, "-o", "json")); !hasProblem(plan, "OnNode", false) {
		t.Errorf("row 09: problems %+v", plan.Problems)
	}
	r.mustComplete()
	r.expectDisks(goes, wanted) // the plans with --preserve wrote no label
	volume, err := r.Client.CoreV1().PersistentVolumes().Get(r.Ctx, local, metav1.GetOptions{})
	r.Must(err, "read the volume on a node")
	if _, labeled := volume.Labels[alive.PreserveLabel]; !labeled {
		t.Error("the volume on a node is not kept")
	}
}

func hasProblem(document *core.Document, reason string, refuses bool) bool {
	return slices.ContainsFunc(document.Problems, func(p core.Problem) bool { return p.Reason == reason && p.Refuses == refuses })
}

// addLocal creates a volume on the disk of a node, and its claim. It returns the name of the volume.
func (r *rig) addLocal() string {
	r.T.Helper()
	volume := r.CreateVolume("local", v1.PersistentVolumeReclaimRetain, func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/mnt/disk"}}
		v.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn,
				Values: []string{"node"}}}}}}}
	})
	r.CreateClaim("local", r.Namespace, func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = volume.Name })
	r.AwaitBound("local")
	return volume.Name
}
