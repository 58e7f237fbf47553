package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/plan"
	"github.com/exeunt-io/exeunt/pkg/why/cluster/clustertest"
)

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

func TestGatewayOfAPIServerRefuses(t *testing.T) { // 33
	for name, tc := range map[string]struct{ address, server string }{
		"an IP address": {"203.0.113.9", "https://api.example.com"},
		"a host name":   {"lb.example.com", "https://203.0.113.9"},
	} {
		gateway := custom("gateway.networking.k8s.io/v1", "Gateway", "api", "example.com/gateway")
		gateway.Object["status"] = map[string]any{"addresses": []any{map[string]any{"value": tc.address}}}
		w := newWorld().serve("gateway.networking.k8s.io/v1", "gateways", "Gateway", gateway)
		w.addresses = map[string][]string{"api.example.com": {"203.0.113.9"}, "lb.example.com": {"203.0.113.9"}}
		read := w.read(t, func(o *plan.Options) { o.Server = tc.server })
		if got := refusals(read); !slices.Equal(got, []string{"LeadsToAPI"}) {
			t.Errorf("%s: refusals %q", name, got)
		}
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
	if read := w.read(t, with); !slices.Equal(refusals(read), []string{"OtherUnreadable"}) {
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
