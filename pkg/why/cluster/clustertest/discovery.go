package clustertest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Discovery answers which kinds an API server serves, and everything else by Next.
type Discovery struct {
	// Served are the kinds by their group and version, such as "apps/v1". A version without kinds does not answer.
	Served map[string][]metav1.APIResource
	Next   http.Handler
}

// ServeHTTP answers the request.
func (d Discovery) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := strings.Trim(r.URL.Path, "/")
	version := strings.TrimPrefix(strings.TrimPrefix(path, "apis/"), "api/")
	resources, known := d.Served[version]
	switch {
	case path == "api":
		write(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"},
			Versions: []string{"v1"}})
	case path == "apis":
		write(w, d.groups())
	case known && len(resources) == 0:
		w.WriteHeader(http.StatusServiceUnavailable)
	case known:
		write(w, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: version, APIResources: resources})
	default:
		d.Next.ServeHTTP(w, r)
	}
}

// groups returns the groups of the served versions.
func (d Discovery) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for version := range d.Served {
		gv, err := schema.ParseGroupVersion(version)
		if err != nil || gv.Group == "" {
			continue
		}
		name := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: gv.Version}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{name},
			PreferredVersion: name})
	}
	return list
}

// Objects are the objects of a cluster by their resource, such as "pods".
type Objects map[string][]metav1.Object

// listKinds are the kinds of lists that Objects serve.
var listKinds = map[string]string{
	"persistentvolumes": "PersistentVolumeList", "persistentvolumeclaims": "PersistentVolumeClaimList", "pods": "PodList",
	"events": "EventList", "leases": "LeaseList", "csidrivers": "CSIDriverList", "csinodes": "CSINodeList",
	"storageclasses": "StorageClassList", "volumeattachments": "VolumeAttachmentList",
	"namespaces": "NamespaceList", "services": "ServiceList", "ingresses": "IngressList",
	"nodes": "NodeList", "volumesnapshots": "VolumeSnapshotList", "deployments": "DeploymentList",
	"statefulsets": "StatefulSetList", "daemonsets": "DaemonSetList", "configmaps": "ConfigMapList",
	"validatingadmissionpolicies":       "ValidatingAdmissionPolicyList",
	"validatingadmissionpolicybindings": "ValidatingAdmissionPolicyBindingList",
	"mutatingadmissionpolicies":         "MutatingAdmissionPolicyList",
	"mutatingadmissionpolicybindings":   "MutatingAdmissionPolicyBindingList",
	"validatingwebhookconfigurations":   "ValidatingWebhookConfigurationList",
	"mutatingwebhookconfigurations":     "MutatingWebhookConfigurationList",
}

// ServeHTTP answers lists, and requests for single objects.
func (o Objects) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	resource := path[len(path)-1]
	kind, isList := listKinds[resource]
	if object := o.find(path); !isList && object != nil {
		write(w, object)
		return
	}
	if !isList {
		w.WriteHeader(http.StatusNotFound)
		write(w, map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound, "details": map[string]any{"name": resource},
		})
		return
	}
	version, rest := strings.Join(path[1:2], "/"), path[2:]
	if path[0] == "apis" {
		version, rest = strings.Join(path[1:3], "/"), path[3:]
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	selected := slices.DeleteFunc(slices.Clone(o[resource]), func(object metav1.Object) bool {
		elsewhere := len(rest) == 3 && object.GetNamespace() != rest[1]
		return elsewhere || err == nil && !selector.Matches(labels.Set(object.GetLabels()))
	})
	write(w, map[string]any{"kind": kind, "apiVersion": version, "metadata": map[string]any{"resourceVersion": "7"},
		"items": append([]metav1.Object{}, selected...)})
}

// write writes the answer. A client that has ended needs none.
func write(w http.ResponseWriter, answer any) { _ = json.NewEncoder(w).Encode(answer) }

// find returns the object that the path of a request names, or nil.
func (o Objects) find(path []string) metav1.Object {
	if len(path) < 2 {
		return nil
	}
	namespace := ""
	if i := slices.Index(path, "namespaces"); i >= 0 && len(path) > i+2 {
		namespace = path[i+1]
	}
	all := o[path[len(path)-2]]
	i := slices.IndexFunc(all, func(object metav1.Object) bool {
		return object.GetName() == path[len(path)-1] && object.GetNamespace() == namespace
	})
	if i < 0 {
		return nil
	}
	return all[i]
}
