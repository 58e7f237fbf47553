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
func (p *play) object(kind, name string) *life {
	if uid, known := p.created[kind+" "+name]; known {
		return p.recorder.byUID(uid)
	}
	namespace, full := p.where(kind, name)
	if kind == "recycler" {
		kind = "pod"
	}
	return p.recorder.at(place{kind, namespace, full})
}

// where returns the place of an object. Names of cluster-scoped objects begin with the name
// of the scene.
func (p *play) where(kind, name string) (namespace, full string) {
	switch claim, ofClaim := strings.CutPrefix(name, "of "); {
	case kind == "claim", kind == "pod":
		return p.scene, name
	case kind == "recycler":
		return metav1.NamespaceDefault, "recycler-for-" + p.scene + "-" + name
	case kind == "volume" && ofClaim:
		return "", p.volumeOf(claim)
	}
	return "", p.scene + "-" + name
}

// volumeOf returns the volume name of a claim, or the name of its future volume.
func (p *play) volumeOf(claim string) string {
	one := p.object("claim", claim)
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
func (p *play) expand(text, name string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		parts := reference.FindStringSubmatch(found)
		switch word, kind, other := parts[1], parts[2], parts[3]; {
		case word == "scene":
			return p.scene
		case word == "driver":
			return p.driver.DriverName
		case word == "dir":
			return p.dir
		case word == "name" && kind == "":
			return name
		case word == "name":
			_, full := p.where(kind, other)
			return full
		case word == "uid":
			if one := p.object(kind, other); one != nil {
				return string(one.object.GetUID())
			}
			return string(p.created[kind+" "+other])
		}
		return found
	})
}

func (p *play) decode(text, name string) (map[string]any, error) {
	object := map[string]any{}
	if text == "" {
		return object, nil
	}
	if err := json.Unmarshal([]byte(p.expand(text, name)), &object); err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	return object, nil
}
