package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/exeunt-io/exeunt/pkg/teardown/plan"
)

// minID is how many characters of the ID a person gives at least.
const minID = 8

// checkID refuses an ID that is not that of the cluster.
func (f *teardownFlags) checkID(id, server string) error {
	actual := fmt.Sprintf("the cluster at %s has the ID %s", server, id)
	switch {
	case f.confirm == "":
		return refused("--confirm has no ID, and %s: nothing was written", actual)
	case len(f.confirm) >= minID && strings.HasPrefix(id, f.confirm):
		return nil
	case strings.HasPrefix(id, f.confirm):
		return refused("--confirm=%s is too short, at least %d characters, and %s: nothing was written", f.confirm, minID,
			actual)
	}
	if other, is := f.serverOfContext(f.confirm); is {
		return refused("--confirm=%s is the name of a context, with the server %s, and no ID, and %s: nothing was written",
			f.confirm, other, actual)
	}
	return refused("--confirm=%s is not the ID of this cluster, but %s: nothing was written", f.confirm, actual)
}

// serverOfContext returns the server of a context, and whether there is such a context.
func (f *teardownFlags) serverOfContext(name string) (string, bool) {
	raw, err := f.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil || raw.Contexts[name] == nil {
		return "", false
	}
	if found := raw.Clusters[raw.Contexts[name].Cluster]; found != nil {
		return found.Server, true
	}
	return "unknown", true
}

// preservedKinds are the kinds of --preserve.
const preservedKinds = "pv, pvc, namespace, service, ingress, gateway, volumesnapshot"

// kindsOf are the kinds of the API by the words of --preserve.
var kindsOf = map[string]string{"pv": "PersistentVolume", "pvc": "PersistentVolumeClaim", "namespace": "Namespace",
	"service": "Service", "ingress": "Ingress", "gateway": "Gateway", "volumesnapshot": "VolumeSnapshot"}

// clusterScoped are the kinds without a namespace.
var clusterScoped = []string{"PersistentVolume", "Namespace"}

// targets returns the objects of --preserve. One without a namespace is in that of the context.
func (f *teardownFlags) targets() ([]plan.Target, error) {
	var targets []plan.Target
	for _, text := range f.preserve {
		words := strings.Split(text, "/")
		kind, known := kindsOf[strings.ToLower(words[0])]
		target := plan.Target{Kind: kind, Name: words[len(words)-1]}
		scoped := slices.Contains(clusterScoped, kind)
		switch {
		case !known:
			return nil, fmt.Errorf("--preserve must be KIND/[NAMESPACE/]NAME with one of the kinds %s, not %q", preservedKinds,
				text)
		case slices.Contains(words, "") || len(words) < 2 || len(words) > 3 || scoped && len(words) == 3:
			return nil, fmt.Errorf("--preserve must be KIND/[NAMESPACE/]NAME, such as pvc/shop/orders or pv/NAME, not %q", text)
		case len(words) == 3:
			target.Namespace = words[1]
		case !scoped:
			namespace, _, err := f.config.ToRawKubeConfigLoader().Namespace()
			if err != nil {
				return nil, fmt.Errorf("load kubeconfig: %w", err)
			}
			target.Namespace = namespace
		}
		targets = append(targets, target)
	}
	return targets, nil
}
