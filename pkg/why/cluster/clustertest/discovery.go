package clustertest

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		write(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}})
	case path == "apis":
		write(w, d.groups())
	case known && len(resources) == 0:
		w.WriteHeader(http.StatusServiceUnavailable)
	case known:
		write(w, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version, APIResources: resources})
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
		list.Groups = append(list.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{name}, PreferredVersion: name})
	}
	return list
}
