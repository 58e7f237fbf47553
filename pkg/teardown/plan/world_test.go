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

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

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
