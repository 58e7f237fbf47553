package plan_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/plan"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

const id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"

// world is a cluster: its objects, what it serves, and what its user may do.
type world struct {
	objects clustertest.Objects
	served  map[string][]metav1.APIResource
	allowed func(authorizationv1.ResourceAttributes) bool
	// refused are the resources whose lists are forbidden.
	refused []string
	writes  []string
	// addresses are those of host names.
	addresses map[string][]string
}

func newWorld() *world {
	system := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: id}}
	shop := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	return &world{objects: clustertest.Objects{"namespaces": {system, shop}},
		served: map[string][]metav1.APIResource{"v1": {{Name: "pods", Kind: "Pod", Namespaced: true, Verbs: []string{"list"}},
			{Name: "namespaces", Kind: "Namespace", Verbs: []string{"list"}},
			{Name: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true, Verbs: []string{"list"}}}},
		allowed: func(authorizationv1.ResourceAttributes) bool { return true }}
}

func (w *world) add(resource string, objects ...metav1.Object) *world {
	w.objects[resource] = append(w.objects[resource], objects...)
	return w
}

// serve adds a custom kind with objects.
func (w *world) serve(version, resource, kind string, objects ...metav1.Object) *world {
	w.served[version] = append(w.served[version], metav1.APIResource{Name: resource, Kind: kind, Namespaced: true,
		Verbs: []string{"list", "get"}})
	return w.add(resource, objects...)
}

func (w *world) ServeHTTP(writer http.ResponseWriter, request *http.Request) {
	writer.Header().Set("Content-Type", "application/json")
	last := request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]
	switch {
	case last == "selfsubjectaccessreviews":
		body, _ := io.ReadAll(request.Body)
		decoded, _, _ := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		review := decoded.(*authorizationv1.SelfSubjectAccessReview)
		review.TypeMeta = metav1.TypeMeta{Kind: "SelfSubjectAccessReview", APIVersion: "authorization.k8s.io/v1"}
		review.Status.Allowed = w.allowed(*review.Spec.ResourceAttributes)
		_ = json.NewEncoder(writer).Encode(review)
	case request.Method != http.MethodGet:
		w.writes = append(w.writes, request.Method+" "+request.URL.Path)
		writer.WriteHeader(http.StatusForbidden)
	case last == "version":
		_, _ = writer.Write([]byte(`{"gitVersion": "v1.36.3"}`))
	case slices.Contains(w.refused, last):
		writer.WriteHeader(http.StatusForbidden)
		_, _ = writer.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
	default:
		clustertest.Discovery{Served: w.served, Next: w.custom()}.ServeHTTP(writer, request)
	}
}

func (w *world) lookup(_ context.Context, host string) ([]string, error) {
	found, known := w.addresses[host]
	if !known {
		return nil, &net.DNSError{Name: host, Err: "i/o timeout", IsTimeout: true}
	}
	if len(found) == 0 {
		return nil, &net.DNSError{Name: host, Err: "no such host", IsNotFound: true}
	}
	return found, nil
}

// custom answers lists of custom kinds.
func (w *world) custom() http.Handler {
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		last := request.URL.Path[strings.LastIndex(request.URL.Path, "/")+1:]
		for version, resources := range w.served {
			for _, resource := range resources {
				if resource.Name == last && version != "v1" {
					first, _ := strconv.Atoi(request.URL.Query().Get("continue"))
					_ = json.NewEncoder(writer).Encode(w.page(version, resource, first))
					return
				}
			}
		}
		w.objects.ServeHTTP(writer, request)
	})
}

// page is a list of one object.
func (w *world) page(version string, resource metav1.APIResource, first int) map[string]any {
	items, more := append([]metav1.Object{}, w.objects[resource.Name]...), ""
	if first+1 < len(items) {
		more = strconv.Itoa(first + 1)
	}
	return map[string]any{"kind": resource.Kind + "List", "apiVersion": version,
		"metadata": map[string]any{"resourceVersion": "7", "continue": more}, "items": items[first:min(first+1, len(items))]}
}

func (w *world) read(t *testing.T, change ...func(*plan.Options)) *plan.Plan {
	t.Helper()
	options := plan.Options{Reader: clustertest.NewReader(t, w.ServeHTTP), Server: "https://192.0.2.7:6443", Lookup: w.lookup}
	for _, c := range change {
		c(&options)
	}
	read := plan.Read(t.Context(), options)
	if len(w.writes) > 0 {
		t.Errorf("the plan wrote: %q", w.writes)
	}
	return read
}

// refusals returns the reasons of what refuses.
func refusals(p *plan.Plan) []string {
	reasons := []string{}
	for _, problem := range p.Problems {
		if problem.Refuses {
			reasons = append(reasons, problem.Reason)
		}
	}
	return reasons
}

// textOf returns the problem of the reason with its next step.
func textOf(p *plan.Plan, reason string) string {
	var texts []string
	for _, problem := range p.Problems {
		if problem.Reason == reason {
			texts = append(texts, problem.Text+"\n"+problem.Next)
		}
	}
	return strings.Join(texts, "\n")
}

func disk(change ...func(*v1.PersistentVolume)) *v1.PersistentVolume {
	object := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk", UID: "disk",
		Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": "ebs.csi.aws.com"},
		Finalizers:  []string{"external-provisioner.volume.kubernetes.io/finalizer"}}}
	object.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimDelete
	object.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-1"}
	object.Spec.ClaimRef = &v1.ObjectReference{Namespace: "shop", Name: "data", UID: "data"}
	object.Status.Phase = v1.VolumeBound
	for _, c := range change {
		c(object)
	}
	return object
}

func retain(v *v1.PersistentVolume) {
	v.Spec.PersistentVolumeReclaimPolicy = v1.PersistentVolumeReclaimRetain
}

func data() *v1.PersistentVolumeClaim {
	object := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "data"}}
	object.Spec.VolumeName, object.Status.Phase = "disk", v1.ClaimBound
	return object
}

func balancer(address string) *v1.Service {
	object := &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web",
		Finalizers: []string{"service.kubernetes.io/load-balancer-cleanup"}}}
	object.Spec.Type = v1.ServiceTypeLoadBalancer
	object.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{IP: address}}
	return object
}

// node is ready unless it is named otherwise.
func node(name string, labels map[string]string) *v1.Node {
	object := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	status := v1.ConditionTrue
	if name == "dead" {
		status = v1.ConditionFalse
	}
	object.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: status}}
	return object
}

// driver returns the Deployment of a CSI driver.
func driver(replicas int32) *appsv1.Deployment {
	object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "ebs-csi-controller"}}
	object.Spec.Replicas = &replicas
	object.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "ebs"}}
	object.Spec.Template.Spec.Containers = []v1.Container{{Name: "csi-provisioner", Image: "registry.k8s.io/csi-provisioner:v5.0.0",
		Args: []string{"--driver-name=ebs.csi.aws.com"}}}
	object.Status.ReadyReplicas = replicas
	return object
}

func custom(version, kind, name string, finalizers ...string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	object.SetNamespace("shop")
	object.SetName(name)
	object.SetUID(types.UID(name))
	object.SetFinalizers(finalizers)
	return object
}

func TestPlanNamesClusterAndItems(t *testing.T) {
	read := newWorld().add("persistentvolumes", disk()).add("persistentvolumeclaims", data()).
		add("services", balancer("192.0.2.1")).add("nodes", node("a", nil)).read(t)
	if want := (teardown.Cluster{ID: id, Server: "https://192.0.2.7:6443", Version: "v1.36.3", Nodes: 1}); read.Cluster != want {
		t.Errorf("cluster %+v, want %+v", read.Cluster, want)
	}
	if len(read.Items) != 2 || read.Items[0].ExternalID != "vol-1" || read.Items[0].Claim != "shop/data" ||
		read.Items[1].ExternalID != "192.0.2.1" {
		t.Errorf("items %+v", read.Items)
	}
	if read.Totals[teardown.Volume].Delete != 1 || read.Refuses() {
		t.Errorf("totals %+v, refusals %q", read.Totals, refusals(read))
	}
}

func TestEmptyClusterRefusesNothing(t *testing.T) {
	if read := newWorld().read(t); read.Refuses() || len(read.Items) != 0 || len(read.Incomplete) != 0 {
		t.Errorf("refusals %q, items %+v, incomplete %q", refusals(read), read.Items, read.Incomplete)
	}
}

func TestLoadBalancerOfAPIServerRefuses(t *testing.T) { // 33
	read := newWorld().add("services", balancer("192.0.2.7")).read(t)
	if got := refusals(read); !slices.Equal(got, []string{"LeadsToAPI"}) {
		t.Errorf("refusals %q", got)
	}
}

// namedBalancer is a load balancer with a host name.
func namedBalancer(host string) *v1.Service {
	object := balancer("")
	object.Status.LoadBalancer.Ingress = []v1.LoadBalancerIngress{{Hostname: host}}
	return object
}

func TestHostNameOfAPIServerRefuses(t *testing.T) { // 33
	w := newWorld().add("services", namedBalancer("lb.example.com"))
	at := func(server string) func(*plan.Options) { return func(o *plan.Options) { o.Server = server } }
	for name, tc := range map[string]struct {
		server string
		known  map[string][]string
		want   []string
	}{
		"the same name":            {"https://lb.example.com", map[string][]string{"lb.example.com": {"192.0.2.1"}}, []string{"LeadsToAPI"}},
		"its address":              {"https://192.0.2.1", map[string][]string{"lb.example.com": {"192.0.2.1"}}, []string{"LeadsToAPI"}},
		"another address":          {"https://192.0.2.1", map[string][]string{"lb.example.com": {"192.0.2.2"}}, []string{}},
		"a name without address":   {"https://192.0.2.1", map[string][]string{"lb.example.com": {}}, []string{}},
		"a name that is not known": {"https://192.0.2.1", nil, []string{"Unreadable"}},
		"an API server not known":  {"https://api.example.com", map[string][]string{"lb.example.com": {}}, []string{"Unreadable"}},
	} {
		w.addresses = tc.known
		if got := refusals(w.read(t, at(tc.server))); !slices.Equal(got, tc.want) {
			t.Errorf("%s: refusals %q, want %q", name, got, tc.want)
		}
	}
}

// Nobody asks for names where no load balancer could lead to the API server.
func TestClusterWithoutLoadBalancersNeedsNoNames(t *testing.T) {
	read := newWorld().read(t, func(o *plan.Options) { o.Server = "https://api.example.com" })
	if read.Refuses() || len(read.Incomplete) != 0 {
		t.Errorf("refusals %q, incomplete %q", refusals(read), read.Incomplete)
	}
}

func TestProgramThatIsGoneRefuses(t *testing.T) { // 65
	volumes := func() *world {
		return newWorld().add("persistentvolumes", disk()).add("persistentvolumeclaims", data())
	}
	expired := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "ebs-csi-aws-com"}}
	expired.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(-time.Hour)}
	expired.Spec.LeaseDurationSeconds, expired.Spec.HolderIdentity = ptr.To(int32(15)), ptr.To("pod")
	for name, tc := range map[string]struct {
		world *world
		want  []string
		state string
	}{
		"it works":              {volumes().add("deployments", driver(1)).add("nodes", node("a", nil)), []string{}, "acts"},
		"scaled to zero":        {volumes().add("deployments", driver(0)).add("nodes", node("a", nil)), []string{"ControllerGone"}, "gone"},
		"no trace but a Lease":  {volumes().add("leases", expired).add("nodes", node("a", nil)), []string{"ControllerGone"}, "gone"},
		"no node is ready":      {volumes().add("deployments", driver(1)).add("nodes", node("dead", nil)), []string{"NoReadyNode"}, "no node"},
		"managed, not visible":  {volumes().add("nodes", node("a", nil)), []string{}, "unseen"},
		"nothing to be deleted": {newWorld().add("persistentvolumes", disk(retain)).add("deployments", driver(0)), []string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			read := tc.world.read(t)
			if got := refusals(read); !slices.Equal(got, tc.want) {
				t.Errorf("refusals %q, want %q", got, tc.want)
			}
			state := ""
			if len(read.Workers) > 0 {
				state = read.Workers[0].State
			}
			if state != tc.state {
				t.Errorf("workers %+v, want state %q", read.Workers, tc.state)
			}
		})
	}
}

func TestListThatCannotBeReadRefuses(t *testing.T) { // 66
	for _, resource := range []string{"persistentvolumes", "persistentvolumeclaims", "pods", "services", "ingresses", "leases",
		"volumeattachments", "storageclasses", "events", "nodes", "validatingwebhookconfigurations"} {
		w := newWorld()
		w.refused = []string{resource}
		if read := w.read(t); !slices.Contains(refusals(read), "Unreadable") || len(read.Incomplete) == 0 {
			t.Errorf("%s: refusals %q, incomplete %q", resource, refusals(read), read.Incomplete)
		}
	}
}

func aliveOf(version string, spec map[string]any) *unstructured.Unstructured {
	object := custom(version, "Alive", "cluster", "example.com/buckets")
	object.SetNamespace("")
	object.Object["spec"] = spec
	return object
}

// Its participants and its permission count: who does not know them knows nothing.
func TestAliveThatCannotBeReadRefuses(t *testing.T) {
	const version, later = "lifecycle.exeunt.io/v1alpha1", "lifecycle.exeunt.io/v1"
	good := map[string]any{"protected": true}
	if read := newWorld().serve(version, "alives", "Alive", aliveOf(version, good)).read(t); read.Refuses() || len(read.Items) != 1 {
		t.Errorf("refusals %q, items %+v", refusals(read), read.Items)
	}
	forbidden := newWorld().serve(version, "alives", "Alive", aliveOf(version, good))
	forbidden.refused = []string{"cluster"}
	for name, w := range map[string]*world{
		"no right":        forbidden,
		"without spec":    newWorld().serve(version, "alives", "Alive", aliveOf(version, map[string]any{})),
		"a later version": newWorld().serve(later, "alives", "Alive", aliveOf(later, good)),
	} {
		if read := w.read(t); !slices.Equal(refusals(read), []string{"Unreadable"}) || len(read.Incomplete) == 0 {
			t.Errorf("%s: refusals %q, incomplete %q", name, refusals(read), read.Incomplete)
		}
	}
}

func TestAllPagesOfSnapshotsAreRead(t *testing.T) {
	const version = "snapshot.storage.k8s.io/v1"
	read := newWorld().serve(version, "volumesnapshots", "VolumeSnapshot", custom(version, "VolumeSnapshot", "a"),
		custom(version, "VolumeSnapshot", "b"), custom(version, "VolumeSnapshot", "c")).read(t, func(o *plan.Options) {
		o.Preserve = []plan.Target{{Kind: "VolumeSnapshot", Namespace: "shop", Name: "c"}}
	})
	if len(read.Items) != 3 || read.Items[2].Reason != "Preserved" || read.Refuses() {
		t.Errorf("refusals %q, items %+v", refusals(read), read.Items)
	}
}

// With the kubeconfig of the same cluster all disks would be shared, and kept.
func TestSameClusterIsNoOtherCluster(t *testing.T) {
	w := newWorld().add("persistentvolumes", disk()).add("persistentvolumeclaims", data())
	read := w.read(t, func(o *plan.Options) {
		o.Others = []plan.Other{{Name: "b", Reader: clustertest.NewReader(t, w.ServeHTTP)}}
	})
	if got := refusals(read); !slices.Equal(got, []string{"SameCluster"}) {
		t.Errorf("refusals %q", got)
	}
}

func TestOtherClusterThatCannotBeReadRefuses(t *testing.T) { // 05, 66
	other := newWorld().add("persistentvolumes", disk())
	other.objects["namespaces"] = nil // the other cluster's user need not read its ID
	with := func(o *plan.Options) {
		o.Others = []plan.Other{{Name: "b", Reader: clustertest.NewReader(t, other.ServeHTTP)}}
	}
	w := newWorld().add("persistentvolumes", disk()).add("persistentvolumeclaims", data())
	if read := w.read(t, with); read.Items[0].Reason != "HandleShared" || read.Refuses() {
		t.Errorf("%+v, refusals %q", read.Items[0], refusals(read))
	}
	other.refused = []string{"persistentvolumes"}
	if read := w.read(t, with); !slices.Equal(refusals(read), []string{"Unreadable"}) {
		t.Errorf("refusals %q", refusals(read))
	}
}

func TestClusterThatServesOthersRefuses(t *testing.T) { // 69
	for name, kind := range map[string]string{"cluster.x-k8s.io/v1beta1 clusters": "Cluster",
		"hypershift.openshift.io/v1beta1 hostedclusters": "HostedCluster", "core.gardener.cloud/v1beta1 shoots": "Shoot",
		"kamaji.clastix.io/v1alpha1 tenantcontrolplanes": "TenantControlPlane", "ocs.openshift.io/v1 storageconsumers": "StorageConsumer"} {
		version, resource, _ := strings.Cut(name, " ")
		read := newWorld().serve(version, resource, kind, custom(version, kind, "prod")).read(t)
		if got := refusals(read); !slices.Equal(got, []string{"ServesClusters"}) || !strings.Contains(textOf(read, "ServesClusters"), "prod") {
			t.Errorf("%s: refusals %q", kind, got)
		}
		if read := newWorld().serve(version, resource, kind).read(t); read.Refuses() {
			t.Errorf("%s without objects: refusals %q", kind, refusals(read))
		}
	}
}

func TestMissingRightsArePrintedAsRules(t *testing.T) {
	w := newWorld()
	w.allowed = func(r authorizationv1.ResourceAttributes) bool { return r.Verb != "delete" && r.Verb != "*" }
	read := w.read(t)
	text := textOf(read, "RightsMissing")
	for _, want := range []string{`{apiGroups: [""], resources: ["persistentvolumeclaims"], verbs: [delete]}`,
		`{apiGroups: ["lifecycle.exeunt.io"], resources: ["alives"], verbs: [delete], resourceNames: [cluster]}`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not among the missing rules:\n%s", want, text)
		}
	}
	if !read.Refuses() {
		t.Error("missing rights do not refuse")
	}
}

// Where the kind is not served, the command installs it; whoever keeps an object sets its label.
func TestRightsOfPersonAreAskedFor(t *testing.T) {
	const version = "lifecycle.exeunt.io/v1alpha1"
	keep := func(o *plan.Options) {
		o.Preserve = []plan.Target{{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}, {Kind: "Namespace", Name: "shop"}}
	}
	asked := func(w *world, change ...func(*plan.Options)) string {
		w.allowed = func(authorizationv1.ResourceAttributes) bool { return false }
		return textOf(w.add("persistentvolumeclaims", data()).read(t, change...), "RightsMissing")
	}
	const install, keeps = `resources: ["customresourcedefinitions"], verbs: [get, create, patch], resourceNames: [alives.lifecycle.exeunt.io]`,
		`{apiGroups: [""], resources: ["persistentvolumeclaims"], verbs: [patch], resourceNames: [data]} in namespace shop`
	for name, tc := range map[string]struct {
		text      string
		has, lack []string
	}{
		"not installed": {asked(newWorld(), keep), []string{install, keeps, `resources: ["namespaces"], verbs: [patch], resourceNames: [shop]`}, nil},
		"installed": {asked(newWorld().serve(version, "alives", "Alive", aliveOf(version, map[string]any{"protected": true}))),
			[]string{`resources: ["alives"], verbs: [delete`}, []string{install, keeps, "hostedclusters", "gateways"}},
	} {
		for _, want := range tc.has {
			if !strings.Contains(tc.text, want) {
				t.Errorf("%s: %q is missing in:\n%s", name, want, tc.text)
			}
		}
		for _, unwanted := range tc.lack {
			if strings.Contains(tc.text, unwanted) {
				t.Errorf("%s: %q is needless:\n%s", name, unwanted, tc.text)
			}
		}
	}
}

func TestNameThatDoesNotExistRefuses(t *testing.T) {
	w := newWorld().add("persistentvolumes", disk()).add("persistentvolumeclaims", data())
	read := w.read(t, func(o *plan.Options) {
		o.Preserve = []plan.Target{{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "dat"}}
		o.Last = []string{"shoop"}
	})
	if got := refusals(read); !slices.Equal(got, []string{"PreserveMissing", "LastMissing"}) {
		t.Errorf("refusals %q", got)
	}
	read = w.read(t, func(o *plan.Options) {
		o.Preserve = []plan.Target{{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}}
		o.Last = []string{"shop"}
	})
	if read.Refuses() || read.Items[0].Reason != "Preserved" {
		t.Errorf("refusals %q, items %+v", refusals(read), read.Items)
	}
	w.refused = []string{"namespaces", "persistentvolumeclaims"}
	unread := w.read(t, func(o *plan.Options) {
		o.Preserve = []plan.Target{{Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data"}}
		o.Last = []string{"shop"}
	})
	for _, reason := range []string{"PreserveMissing", "LastMissing"} {
		if got := textOf(unread, reason); strings.Contains(got, "there is no") || !strings.Contains(got, "was not seen") {
			t.Errorf("what was not read is said not to exist: %q", got)
		}
	}
}

func TestKeptVolumeThatPlatformTakesIsNamed(t *testing.T) {
	azure := func(v *v1.PersistentVolume) {
		retain(v)
		v.Spec.CSI.Driver = "disk.csi.azure.com"
		v.Spec.CSI.VolumeHandle = "/subscriptions/1/resourceGroups/MC_group/providers/Microsoft.Compute/disks/d"
	}
	renamed := func(v *v1.PersistentVolume) {
		azure(v)
		v.Spec.CSI.VolumeHandle = "/subscriptions/1/resourceGroups/Nodes/providers/Microsoft.Compute/disks/d"
	}
	elsewhere := func(v *v1.PersistentVolume) {
		azure(v)
		v.Spec.CSI.VolumeHandle = "/subscriptions/1/resourceGroups/data/providers/Microsoft.Compute/disks/d"
	}
	tagged := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "ebs"}}
	tagged.Spec.Containers = []v1.Container{{Args: []string{"--k8s-tag-cluster-id=prod.example.com"}}}
	for name, tc := range map[string]struct {
		label, want string
		volume      *v1.PersistentVolume
	}{
		"kOps":              {"kops.k8s.io/instancegroup", "aws ec2 delete-tags --resources vol-1 --tags Key=kubernetes.io/cluster/prod.example.com", disk(retain)},
		"openshift-install": {"node.openshift.io/os_id", "aws ec2 delete-tags --resources vol-1", disk(retain)},
		"AKS":               {"kubernetes.azure.com/cluster", "az resource move", disk(azure)},
		"AKS, another name": {"kubernetes.azure.com/cluster", "az resource move", disk(renamed)},
		"another group":     {"kubernetes.azure.com/cluster", "", disk(elsewhere)},
	} {
		machine := node("a", map[string]string{tc.label: "x"})
		machine.Spec.ProviderID = "azure:///subscriptions/1/resourceGroups/nodes/providers/Microsoft.Compute/virtualMachines/a"
		w := newWorld().add("nodes", machine).add("persistentvolumes", tc.volume).add("pods", tagged)
		if got := textOf(w.read(t), "TakenByPlatform"); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	w := newWorld().add("nodes", node("a", map[string]string{"kops.k8s.io/instancegroup": "x"})).
		add("persistentvolumes", disk()).add("persistentvolumeclaims", data())
	if got := textOf(w.read(t), "TakenByPlatform"); got != "" {
		t.Errorf("a volume that is deleted: %q", got)
	}
}

func TestKeptVolumeOnNodeIsWarnedOf(t *testing.T) { // 09
	local := disk(retain, func(v *v1.PersistentVolume) {
		v.Spec.PersistentVolumeSource = v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/mnt/a"}}
	})
	if got := textOf(newWorld().add("persistentvolumes", local).read(t), "OnNode"); !strings.Contains(got, "1 kept volume: disk") {
		t.Errorf("%q", got)
	}
}

func TestWhatIsNotCoveredIsNamedWithCommand(t *testing.T) {
	w := newWorld().
		serve("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition",
			custom("apiextensions.k8s.io/v1", "CustomResourceDefinition", "buckets.s3.aws.upbound.io"),
			custom("apiextensions.k8s.io/v1", "CustomResourceDefinition", "nodepools.karpenter.sh"),
			custom("apiextensions.k8s.io/v1", "CustomResourceDefinition", "notes.example.com")).
		serve("s3.aws.upbound.io/v1beta1", "buckets", "Bucket",
			custom("s3.aws.upbound.io/v1beta1", "Bucket", "b", "finalizer.managedresource.crossplane.io")).
		serve("karpenter.sh/v1", "nodepools", "NodePool", custom("karpenter.sh/v1", "NodePool", "default")).
		serve("example.com/v1", "notes", "Note", custom("example.com/v1", "Note", "n"), custom("example.com/v1", "Note", "o", "foregroundDeletion"))
	named := balancer("192.0.2.1")
	named.Annotations = map[string]string{"external-dns.alpha.kubernetes.io/hostname": "shop.example.com"}
	got := textOf(w.add("services", named).read(t), "NotCovered")
	for _, want := range []string{"1 buckets.s3.aws.upbound.io", "kubectl delete buckets.s3.aws.upbound.io --all",
		"1 NodePool make", "kubectl delete nodepools.karpenter.sh --all", "external-dns wrote for 1 Service"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "notes.example.com") {
		t.Errorf("a kind without finalizers is named:\n%s", got)
	}
}
