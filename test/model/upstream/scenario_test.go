package upstream_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/yaml"

	"github.com/exeunt-io/exeunt/test/model/process"
	"github.com/exeunt-io/exeunt/test/model/upstream"
)

// differential is where the scenarios are that the e2e tests run with the real
// kube-controller-manager.
const differential = "../../../test/e2e/differential/testdata/"

// leftOut are the topics and words of the scenarios that the programs of this package do not
// model, and the number of these scenarios.
var leftOut = map[string]int{
	"attributes": 4, "beta": 6, "create node": 3, "defaults": 7, "ephemeral": 3, "gate": 7, "intree": 16, "migration": 12,
}

type scenario struct {
	Name  string
	Races []string
	Steps []any
	topic string
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(differential + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(file, err)
	}
}

func scenarios(t *testing.T) (modeled []*scenario, omitted map[string]int) {
	t.Helper()
	files, err := filepath.Glob(differential + "scenarios/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	omitted = map[string]int{}
	for _, file := range files {
		var found []*scenario
		readYAML(t, "scenarios/"+filepath.Base(file), &found)
		for _, one := range found {
			one.topic = strings.TrimSuffix(filepath.Base(file), ".yaml")
			if word := one.notModeled(); word != "" {
				omitted[word]++
				continue
			}
			modeled = append(modeled, one)
		}
	}
	return modeled, omitted
}

func (s *scenario) notModeled() string {
	text := s.topic + " " + s.Name + fmt.Sprint(s.Steps)
	for _, word := range slices.Sorted(maps.Keys(leftOut)) {
		if word == s.topic || strings.Contains(strings.ToLower(text), word) {
			return word
		}
	}
	return ""
}

// scenarioWorld is a world in which a scenario runs.
type scenarioWorld struct {
	*world
	defaults map[string]json.RawMessage
	// uids are those of the latest objects, by kind and name.
	uids map[string]string
}

func newScenarioWorld(t *testing.T, builds ...process.Build) *scenarioWorld {
	t.Helper()
	w := &scenarioWorld{
		world: newWorld(t, process.Options{Honor: true, Journaled: true}, builds...), uids: map[string]string{},
	}
	w.post("/api/v1/namespaces", `{"metadata":{"name":"`+process.JournalNamespace+`"}}`)
	readYAML(t, "defaults.yaml", &w.defaults)
	shared, err := os.ReadFile(differential + "shared/classes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, class := range strings.Split(string(shared), "\n---\n") {
		body, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(class, "csimock.exeunt.io", process.DriverName)))
		if err != nil {
			t.Fatal(err)
		}
		w.post(classes, string(body))
	}
	w.settle()
	return w
}

func (w *scenarioWorld) path(kind, name string) string {
	claim, ofClaim := strings.CutPrefix(name, "of ")
	switch {
	case kind == "claim":
		return claims + name
	case kind == "pod":
		return "/api/v1/namespaces/shop/pods/" + name
	case kind == "class":
		return classes + "/shop-" + name
	case ofClaim && w.at(claims+claim, "spec/volumeName") != "":
		return volumes + w.at(claims+claim, "spec/volumeName")
	case ofClaim:
		return volumes + "pvc-" + w.uids["claim "+claim]
	}
	return volumes + "shop-" + name
}

var reference = regexp.MustCompile(`\$\{([a-z]+)(?: ([a-z]+) ([^}]+))?\}`)

func (w *scenarioWorld) expand(text, name string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		parts := reference.FindStringSubmatch(found)
		switch {
		case parts[1] == "namespace":
			return "shop"
		case parts[1] == "driver":
			return process.DriverName
		case parts[1] == "uid":
			return w.uids[parts[2]+" "+parts[3]]
		case parts[2] != "":
			name = filepath.Base(w.path(parts[2], parts[3]))
		}
		return name
	})
}

// run runs the steps of the scenario, and returns what the objects are at its end.
func (w *scenarioWorld) run(s *scenario) map[string]string {
	w.t.Helper()
	for _, line := range s.Steps {
		text, value := fmt.Sprint(line), ""
		if entry, isMap := line.(map[string]any); isMap {
			for what, content := range entry {
				encoded, err := json.Marshal(content)
				if err != nil {
					w.t.Fatal(err)
				}
				text, value = what, string(encoded)
			}
		}
		verb, object, _ := strings.Cut(text, " ")
		kind, name, _ := strings.Cut(object, " ")
		w.step(verb, kind, name, value)
		w.settle()
	}
	return w.outcome()
}

func (w *scenarioWorld) step(verb, kind, name, value string) {
	w.t.Helper()
	path := w.path(kind, name)
	body := w.expand(value, filepath.Base(path))
	switch verb {
	case "create":
		w.create(kind, name, path, body)
	case "patch":
		w.patch(path, body)
	case "status":
		w.send("PATCH", path+"/status", "application/merge-patch+json", `{"status":`+body+`}`)
	case "delete":
		if value == "null" && kind == "pod" {
			body = `{"gracePeriodSeconds":0}`
		}
		if w.read(path) != nil { // a program may have been faster
			w.send("DELETE", path, "", strings.TrimSuffix(body, "null"))
		}
	case "await":
		w.await(path, body)
	}
}

// create creates an object from the defaults of its kind and the changes of the step.
func (w *scenarioWorld) create(kind, name, path, changes string) {
	w.t.Helper()
	var object, change map[string]any
	defaults := w.expand(string(w.defaults[kind]), filepath.Base(path))
	if err := json.Unmarshal([]byte(defaults), &object); err != nil {
		w.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(changes), &change); err != nil {
		w.t.Fatal(err)
	}
	object = merge(merge(object, change), map[string]any{"metadata": map[string]any{"name": filepath.Base(path)}})
	body, err := json.Marshal(object)
	if err != nil {
		w.t.Fatal(err)
	}
	w.post(filepath.Dir(path), string(body))
	w.uids[kind+" "+name] = w.at(path, "metadata/uid")
}

func merge(object, changes map[string]any) map[string]any {
	for key, change := range changes {
		inner, isMap := change.(map[string]any)
		before, _ := object[key].(map[string]any)
		switch {
		case change == nil:
			delete(object, key)
		case isMap && before == nil:
			object[key] = merge(map[string]any{}, inner)
		case isMap:
			object[key] = merge(before, inner)
		default:
			object[key] = change
		}
	}
	return object
}

// await checks that the object has the phase or the values, or is gone.
func (w *scenarioWorld) await(path, body string) {
	w.t.Helper()
	var wanted any
	if err := json.Unmarshal([]byte(body), &wanted); err != nil {
		w.t.Fatal(err)
	}
	object := w.read(path)
	if phase, isPhase := wanted.(string); isPhase {
		if wanted = map[string]any{"status": map[string]any{"phase": phase}}; phase == "gone" {
			wanted = nil
		}
	}
	if wanted == nil != (object == nil) || wanted != nil && !contains(object, wanted) {
		w.t.Errorf("%s is %v, want %s", path, object, body)
	}
}

func contains(object, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		have, _ := object.(map[string]any)
		for key, value := range wanted {
			if !contains(have[key], value) {
				return false
			}
		}
		return true
	case []any:
		have, _ := object.([]any)
		return len(have) == len(wanted) && !slices.ContainsFunc(wanted, func(value any) bool {
			return !slices.ContainsFunc(have, func(one any) bool { return contains(one, value) })
		})
	}
	return fmt.Sprint(object) == fmt.Sprint(wanted)
}

// outcome returns the claims and volumes without what no program decides.
func (w *scenarioWorld) outcome() map[string]string {
	w.t.Helper()
	objects := map[string]string{}
	for _, object := range w.cluster.Objects() {
		if object.JSON == "" || !strings.HasPrefix(object.Resource, "persistentvolume") {
			continue
		}
		var content map[string]any
		if err := json.Unmarshal([]byte(object.JSON), &content); err != nil {
			w.t.Fatal(err)
		}
		delete(content["status"].(map[string]any), "message")
		spec, meta := content["spec"].(map[string]any), content["metadata"].(map[string]any)
		if ref, bound := spec["claimRef"].(map[string]any); bound {
			delete(ref, "resourceVersion")
		}
		if finalizers, some := meta["finalizers"].([]any); some {
			slices.SortFunc(finalizers, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
		text, err := json.Marshal(content)
		if err != nil {
			w.t.Fatal(err)
		}
		objects[object.Resource+" "+object.Name] = string(text)
	}
	return objects
}

// pairs are the loops and the provisioner that run together; the first pair is upstream's.
var pairs = map[string][]process.Build{
	"upstream":        {upstream.Controllers, upstream.Sidecar},
	"ours":            {process.PVController, process.Provisioner},
	"our loops":       {process.PVController, upstream.Sidecar},
	"our provisioner": {upstream.Controllers, process.Provisioner},
}

// TestScenariosOfRealUpstream runs the scenarios in which real upstream and our programs leave
// the same objects: so do the programs of this package, alone and beside ours.
func TestScenariosOfRealUpstream(t *testing.T) {
	modeled, omitted := scenarios(t)
	if !maps.Equal(omitted, leftOut) {
		t.Errorf("scenarios left out: %v, want %v", omitted, leftOut)
	}
	for _, one := range modeled {
		t.Run(one.topic+"/"+one.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				want := newScenarioWorld(t, pairs["upstream"]...).run(one)
				for _, pair := range []string{"ours", "our loops", "our provisioner"} {
					got := newScenarioWorld(t, pairs[pair]...).run(one)
					if !maps.Equal(got, want) {
						t.Errorf("%s:\n%s\nupstream:\n%s", pair, lines(got), lines(want))
					}
				}
			})
		})
	}
}

func lines(objects map[string]string) string {
	return strings.Join(slices.Sorted(maps.Values(objects)), "\n")
}
