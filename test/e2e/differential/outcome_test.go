package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// outcome has everything of a scenario on one side that is compared: values, by object and
// field.
type outcome map[string]string

// Paths whose values differ between clusters. Only their presence is compared.
var (
	opaque = []string{
		"/metadata/deletionTimestamp",
		"/spec/claimRef/resourceVersion",
		"/spec/csi/volumeAttributes/storage.kubernetes.io/csiProvisionerIdentity",
		"/status/lastPhaseTransitionTime",
		"/status/message",
	}
	dropped = []string{
		"/metadata/uid", "/metadata/resourceVersion", "/metadata/creationTimestamp",
		"/metadata/managedFields", "/metadata/generation", "/metadata/selfLink",
	}
)

// anyUUID replaces UUIDs in generated names.
var anyUUID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// outcome returns the final state of the scenario's objects.
func (r *scenarioRun) outcome() outcome {
	names := r.names()
	var replace []string
	for one, name := range names {
		replace = append(replace, string(one.object.GetUID()), "UID of "+name)
		if handle, _, _ := unstructured.NestedString(one.object.Object, "spec", "csi", "volumeHandle"); one.generated() &&
			handle != "" {
			replace = append(replace, handle, "HANDLE of "+name)
		}
	}
	replace = append(replace, r.namespace+"-", "", r.namespace, "NAMESPACE", r.dir, "DIR")
	hide := strings.NewReplacer(replace...)
	result := outcome{}
	for one, name := range names {
		about := func(what, value string) {
			result[name+" "+what] = anyUUID.ReplaceAllString(hide.Replace(value), "UUID")
		}
		about("phases", strings.Join(one.phases, ", "))
		for event, messages := range one.events {
			about("event "+event, "seen")
			if words, compared := keyWords(one.kind, event, messages); compared {
				about("words of "+event, words)
			}
		}
		if one.gone {
			about("exists", "no")
			continue
		}
		about("exists", "yes")
		flatten(one.object.Object, "", about)
	}
	return result
}

// names returns comparable names of the scenario's claims and volumes: the claim instead of
// a generated name, and a number for a later object of the same name.
func (r *scenarioRun) names() map[*life]string {
	names := map[*life]string{}
	for _, one := range r.recorder.all() {
		object := one.object
		name := object.GetName()
		claimNamespace, _, _ := unstructured.NestedString(object.Object, "spec", "claimRef", "namespace")
		switch {
		case one.kind == "claim" && object.GetNamespace() == r.namespace:
		case one.kind == "volume" && strings.HasPrefix(name, r.namespace+"-"):
			name = strings.TrimPrefix(name, r.namespace+"-")
		case one.kind == "volume" && claimNamespace == r.namespace:
			claim, _, _ := unstructured.NestedString(object.Object, "spec", "claimRef", "name")
			if owner := r.recorder.byUID(types.UID(strings.TrimPrefix(name, "pvc-"))); owner != nil && owner.number > 1 {
				claim = fmt.Sprintf("%s#%d", claim, owner.number)
			}
			name = "of " + claim
		default:
			continue
		}
		if strings.HasPrefix(name, probePrefix) {
			continue
		}
		if one.number > 1 {
			name = fmt.Sprintf("%s#%d", name, one.number)
		}
		names[one] = one.kind + " " + name
	}
	return names
}

// generated reports whether a provisioner generated the name.
func (l *life) generated() bool { return strings.HasPrefix(l.object.GetName(), "pvc-") }

// flatten returns the leaves of an object by path.
func flatten(value any, path string, tell func(path, value string)) {
	switch {
	case slices.Contains(dropped, path):
		return
	case slices.Contains(opaque, path):
		tell(path, "set")
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			flatten(value[key], path+"/"+key, tell)
		}
	case []any:
		var parts []string
		for _, one := range value {
			text, err := json.Marshal(one)
			if err != nil {
				text = []byte(err.Error())
			}
			parts = append(parts, string(text))
		}
		slices.Sort(parts)
		tell(path, "["+strings.Join(parts, ", ")+"]")
	default:
		tell(path, fmt.Sprint(value))
	}
}

// absent is the value of an object or field that a side does not have.
const absent = "-"

// difference is a value that differs between the sides.
type difference struct {
	// What is the object and the field.
	What string
	// Ours and Upstream are its values, "-" for none.
	Ours, Upstream string
}

func (d difference) String() string {
	return fmt.Sprintf("%s: ours %s, upstream %s", d.What, d.Ours, d.Upstream)
}

// isShortWait reports whether the difference is an event about a wait, which ours sends once
// the wait takes long: whether it is sent depends on the speed of the machine.
func (d difference) isShortWait() bool {
	const waits, calls = " Normal ExternalProvisioning", " Normal Provisioning" + ofProvisioner
	return d.Ours == absent && strings.HasSuffix(d.What, waits) || strings.HasSuffix(d.What, calls)
}

// compare returns the differences. An object or an event of only one side is one
// difference, whatever its fields are.
func compare(ours, upstream outcome) []difference {
	var differences []difference
	all := maps.Clone(ours)
	maps.Copy(all, upstream)
	for _, what := range slices.Sorted(maps.Keys(all)) {
		mine, here := ours[what]
		theirs, there := upstream[what]
		if !here {
			mine = absent
		}
		if !there {
			theirs = absent
		}
		if mine != theirs && !beside(what, ours, upstream) {
			differences = append(differences, difference{what, mine, theirs})
		}
	}
	return differences
}

// beside reports whether a path belongs to an object, or key words to an event, of only one
// side.
func beside(what string, ours, upstream outcome) bool {
	if object, event, isWords := strings.Cut(what, " words of "); isWords {
		return ours[object+" event "+event] != upstream[object+" event "+event]
	}
	object, _, isPath := strings.Cut(what, " /")
	return isPath && ours[object+" exists"] != upstream[object+" exists"]
}
