package alive

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// frozen is a CREATE, and whether the freeze refuses it, also in a namespace whose pods still run.
type frozen struct {
	name, object       string
	refused, alsoThere bool
}

var creations = []frozen{
	{"claim", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}, spec: ` + claimSpec + `}`, true, true},
	{"claim of a Deployment", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, ownerReferences: [{apiVersion: apps/v1, ` +
		`kind: Deployment, name: x, uid: x, controller: true}]}, spec: ` + claimSpec + `}`, true, true},
	{"claim of a pod", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x, ownerReferences: [{apiVersion: v1, ` +
		`kind: Pod, name: x, uid: x, controller: true}]}, spec: ` + claimSpec + `}`, true, false},
	{"pod with a claim", pod(`{name: v, persistentVolumeClaim: {claimName: x}}`), true, false},
	{"pod with an ephemeral volume", pod(`{name: v, ephemeral: {volumeClaimTemplate: {spec: ` + claimSpec + `}}}`), true, false},
	{"pod with a claim after others", pod(`{name: e, emptyDir: {}}, {name: v, persistentVolumeClaim: {claimName: x}}`), true, false},
	{"pod with an empty directory", pod(`{name: v, emptyDir: {}}`), false, false},
	{"pod without volumes", pod(""), false, false},
	{"Service of type LoadBalancer", service("LoadBalancer"), true, true},
	{"Service of type NodePort", service("NodePort"), false, false},
	{"Service of no type", `{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {ports: [{port: 80}]}}`, false, false},
	{"Ingress", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x}, ` +
		`spec: {defaultBackend: {service: {name: x, port: {number: 80}}}}}`, true, true},
	{"VolumeSnapshot", `{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, metadata: {name: x}}`, true, true},
	{"Gateway", `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: x}}`, true, true},
	{"PersistentVolume", `{apiVersion: v1, kind: PersistentVolume, metadata: {name: x}, spec: {capacity: {storage: 1Mi}, ` +
		`accessModes: [ReadWriteOnce], csi: {driver: d, volumeHandle: h}}}`, false, false},
	{"ConfigMap", `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}`, false, false},
	{"StatefulSet", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {serviceName: x, selector: {matchLabels: {a: b}}, ` +
		`template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}, volumeClaimTemplates: [{metadata: {name: d}, spec: ` +
		claimSpec + `}]}}`, false, false},
}

const claimSpec = `{accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}`

func pod(volumes string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c, image: i}], volumes: [` + volumes + `]}}`
}

func service(kind string) string {
	return `{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {type: ` + kind + `, ports: [{port: 80}]}}`
}

// outside are the kinds that the API server does not serve by itself.
func outside(group, kind, plural string) string {
	return strings.NewReplacer("others.example.com", plural+"."+group, "example.com", group, "Other", kind, "others", plural,
		"scope: Cluster", "scope: Namespaced", "metadata: {", "metadata: {annotations: {api-approved.kubernetes.io: unapproved}, ").Replace(other)
}

func TestFreezeRefusesNewVolumesAndLoadBalancers(t *testing.T) {
	r := start(t)
	ordinary, running := r.namespace("ordinary"), r.namespace("running")
	balanced := r.service(ordinary, "balanced", "LoadBalancer")
	plain := r.service(ordinary, "plain", "ClusterIP")
	r.freeze() // before the kinds of others are served
	for _, text := range []string{outside("snapshot.storage.k8s.io", "VolumeSnapshot", "volumesnapshots"),
		outside("gateway.networking.k8s.io", "Gateway", "gateways")} {
		r.must(sandbox.ApplyYAML(r.ctx, r.plane.RESTConfig(), []byte(text)), "apply CRD")
	}
	r.open("['kube-system', 'running']")
	for _, c := range creations {
		for namespace, refused := range map[string]bool{ordinary: c.refused, running: c.alsoThere} {
			var err error
			r.until("the kind of "+c.name+" is served", func() bool {
				err = r.dryCreate(namespace, c.object)
				return !meta.IsNoMatchError(err) && (err == nil || !strings.Contains(err.Error(), "could not find the requested resource"))
			})
			if got := denied(err, "exeunt-teardown-freeze", "the cluster is torn down"); got != refused || !refused && err != nil {
				t.Errorf("%s in namespace %s: %v, want it refused: %v", c.name, namespace, err, refused)
			}
		}
	}
	setType := func(name, kind string) error {
		_, err := r.plane.Client().CoreV1().Services(ordinary).Patch(r.ctx, name, types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{"a":"b"}},"spec":{"type":%q}}`, kind), metav1.PatchOptions{})
		return err
	}
	if err := setType(plain, "LoadBalancer"); !denied(err, "exeunt-teardown-freeze", "") {
		t.Errorf("a Service becomes a load balancer: %v", err)
	}
	for name, kind := range map[string]string{plain: "NodePort", balanced: "LoadBalancer"} {
		if err := setType(name, kind); err != nil {
			t.Errorf("Service %s is written as %s: %v", name, kind, err)
		}
	}
	r.open("[]") // the wave is opened
	if err := r.dryCreate(running, pod(`{name: v, persistentVolumeClaim: {claimName: x}}`)); !denied(err, "exeunt-teardown-freeze", "") {
		t.Errorf("pod with a claim in the opened wave: %v", err)
	}
}

// After a restart, the policy is in force before the first create is answered.
func TestFreezeHoldsAcrossRestarts(t *testing.T) {
	r := start(t)
	r.namespace("ordinary")
	r.freeze()
	r.must(r.plane.Restart(r.ctx, func() error { return nil }), "restart the API server")
	if err := r.dryCreate("ordinary", service("LoadBalancer")); !denied(err, "exeunt-teardown-freeze", "") {
		t.Errorf("#62: the first create is answered with %v", err)
	}
	r.must(r.plane.Client().AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(r.ctx, "exeunt-teardown-freeze",
		metav1.DeleteOptions{}), "delete binding")
	r.until("the freeze is lifted", func() bool { return r.dryCreate("ordinary", service("LoadBalancer")) == nil })
}

// freeze applies the freeze and returns once it is in force.
func (r *rig) freeze() {
	r.Helper()
	r.must(sandbox.ApplyYAML(r.ctx, r.plane.RESTConfig(), deploy.Freeze), "apply the freeze")
	r.until("the freeze is in force", func() bool {
		return denied(r.dryCreate("ordinary", service("LoadBalancer")), "exeunt-teardown-freeze", "")
	})
}

// open writes the first variable of the freeze as the runner does, and returns once it is in force. A mark tells.
func (r *rig) open(namespaces string) {
	r.Helper()
	r.marks++
	mark := fmt.Sprintf("mark-%d", r.marks)
	policies := r.plane.Client().AdmissionregistrationV1().ValidatingAdmissionPolicies()
	policy, err := policies.Get(r.ctx, "exeunt-teardown-freeze", metav1.GetOptions{})
	r.must(err, "get the freeze")
	policy.Spec.Variables[0].Expression = namespaces
	policy.Spec.Validations = append(policy.Spec.Validations[:1], admissionv1.Validation{
		Expression: "object.metadata.name != '" + mark + "'", Message: mark})
	_, err = policies.Update(r.ctx, policy, metav1.UpdateOptions{})
	r.must(err, "change the freeze")
	r.until("the freeze is in force", func() bool {
		err := r.dryCreate("ordinary", strings.Replace(pod(""), "name: x", "name: "+mark, 1))
		return err != nil && strings.Contains(err.Error(), mark)
	})
}

// dryCreate creates the object in a dry run.
func (r *rig) dryCreate(namespace, text string) error {
	r.Helper()
	object := new(unstructured.Unstructured)
	r.must(yaml.Unmarshal([]byte(text), &object.Object), "parse object")
	config := r.plane.RESTConfig()
	config.QPS, config.Burst = 500, 500
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	r.must(err, "make client")
	groups, err := restmapper.GetAPIGroupResources(discovered)
	r.must(err, "discover kinds")
	mapping, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(object.GroupVersionKind().GroupKind())
	if err != nil {
		return err
	}
	var client dynamic.ResourceInterface = r.dynamic(admin).Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		client = r.dynamic(admin).Resource(mapping.Resource).Namespace(namespace)
	}
	_, err = client.Create(r.ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// service creates a Service and returns its name.
func (r *rig) service(namespace, name, kind string) string {
	r.Helper()
	object := new(unstructured.Unstructured)
	r.must(yaml.Unmarshal([]byte(service(kind)), &object.Object), "parse Service")
	object.SetName(name)
	object.SetNamespace(namespace)
	text, err := yaml.Marshal(object.Object)
	r.must(err, "write Service")
	r.must(sandbox.ApplyYAML(r.ctx, r.plane.RESTConfig(), text), "create Service")
	return name
}
