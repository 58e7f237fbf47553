package differential

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// object returns the record of an object of the scenario.
func (r *scenarioRun) object(kind, name string) *life {
	if uid, known := r.created[kind+" "+name]; known {
		return r.recorder.byUID(uid)
	}
	namespace, full := r.namespacedName(kind, name)
	if kind == "recycler" {
		kind = "pod"
	}
	return r.recorder.at(objectKey{kind, namespace, full})
}

// namespacedName returns namespace and name of an object. Names of cluster-scoped objects
// begin with the name of the scenario's namespace.
func (r *scenarioRun) namespacedName(kind, name string) (namespace, full string) {
	switch claim, ofClaim := strings.CutPrefix(name, "of "); {
	case kind == "claim", kind == "pod":
		return r.namespace, name
	case kind == "recycler":
		return metav1.NamespaceDefault, "recycler-for-" + r.namespace + "-" + name
	case kind == "volume" && ofClaim:
		return "", r.volumeOf(claim)
	}
	return "", r.namespace + "-" + name
}

// volumeOf returns the volume name of a claim, or the name of its future volume.
func (r *scenarioRun) volumeOf(claim string) string {
	one := r.object("claim", claim)
	if one == nil {
		return ""
	}
	if name, _, _ := unstructured.NestedString(one.object.Object, "spec", "volumeName"); name != "" {
		return name
	}
	return "pvc-" + string(one.object.GetUID())
}

// reference is ${word} or ${word KIND NAME}.
var reference = regexp.MustCompile(`\$\{([a-z]+)(?: ([a-z]+) ([^}]+))?\}`)

// expand replaces the references in a text; name is the name of the object itself.
func (r *scenarioRun) expand(text, name string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		parts := reference.FindStringSubmatch(found)
		switch word, kind, other := parts[1], parts[2], parts[3]; {
		case word == "namespace":
			return r.namespace
		case word == "driver":
			return r.driver.DriverName
		case word == "dir":
			return r.dir
		case word == "name" && kind == "":
			return name
		case word == "name":
			_, full := r.namespacedName(kind, other)
			return full
		case word == "uid":
			if one := r.object(kind, other); one != nil {
				return string(one.object.GetUID())
			}
			return string(r.created[kind+" "+other])
		}
		return found
	})
}

func (r *scenarioRun) decode(text, name string) (map[string]any, error) {
	object := map[string]any{}
	if text == "" {
		return object, nil
	}
	if err := json.Unmarshal([]byte(r.expand(text, name)), &object); err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	return object, nil
}
