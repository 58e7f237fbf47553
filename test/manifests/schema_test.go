package manifests

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

// invalidValues are refused, and the error says this.
func invalidValues() map[string]invalidValue {
	provisioner := func(v values) values { return values{"provisioner": v} }
	sidecar := func(v values) values { return provisioner(values{"deployment": v}) }
	off := func(v values) values {
		v["enabled"] = false
		return provisioner(v)
	}
	return map[string]invalidValue{
		"number in quotes":   {values{"pvController": values{"replicas": "2"}}, []string{"/pvController/replicas", "got string, want integer"}},
		"negative replicas":  {values{"pvController": values{"replicas": -1}}, []string{"/pvController/replicas", "minimum"}},
		"boolean in quotes":  {provisioner(values{"secrets": "yes"}), []string{"/provisioner/secrets", "got string, want boolean"}},
		"misspelled value":   {values{"pvController": values{"replica": 3}}, []string{"/pvController", "'replica'", "not allowed"}},
		"misspelled program": {values{"pv-controller": values{}}, []string{"'pv-controller'", "not allowed"}},
		"privileged port":    {values{"pvController": values{"securePort": 443}}, []string{"/pvController/securePort", "minimum"}},
		"flags in one string": {sidecar(values{"extraArgs": "--timeout=1m --strict-topology"}),
			[]string{"/provisioner/deployment/extraArgs", "want array"}},
		"argument without dashes":     {sidecar(values{"extraArgs": []any{"strict-topology"}}), []string{"/provisioner/deployment/extraArgs/0", "pattern"}},
		"gate neither true nor false": {values{"pvController": values{"featureGates": values{"HonorPVReclaimPolicy": "maybe"}}}, []string{"/pvController/featureGates/HonorPVReclaimPolicy", "want boolean"}},
		"unknown pull policy": {values{"pvController": values{"image": values{"pullPolicy": "Sometimes"}}},
			[]string{"/pvController/image/pullPolicy", "'Always'"}},
		"account without namespace":     {provisioner(values{"serviceAccounts": []any{values{"name": "a"}}}), []string{"/provisioner/serviceAccounts/0", "'namespace'"}},
		"account as string":             {provisioner(values{"serviceAccounts": []any{"a"}}), []string{"/provisioner/serviceAccounts/0", "want object"}},
		"driver without image":          {sidecar(values{"driver": values{"image": nil}}), []string{"/provisioner/deployment/driver", "'image'"}},
		"verbosity too high":            {sidecar(values{"logLevel": 99}), []string{"/provisioner/deployment/logLevel", "maximum"}},
		"driver name with a dot":        {sidecar(values{"driver": values{"name": "csi.example.com"}}), []string{"/provisioner/deployment/driver/name", "pattern"}},
		"driver name too long":          {sidecar(values{"driver": values{"name": strings.Repeat("d", 64)}}), []string{"/provisioner/deployment/driver/name", "maxLength"}},
		"driver named like the sidecar": {sidecar(values{"driver": values{"name": "csi-provisioner"}}), []string{"/provisioner/deployment/driver/name", "not"}},
		"namespace with a dot":          {provisioner(values{"serviceAccounts": []any{values{"name": "a", "namespace": "b.c"}}}), []string{"/provisioner/serviceAccounts/0/namespace", "pattern"}},
		"namespace too long":            {provisioner(values{"serviceAccounts": []any{values{"name": "a", "namespace": strings.Repeat("n", 64)}}}), []string{"/provisioner/serviceAccounts/0/namespace", "maxLength"}},
		"pull secret as string":         {values{"pvController": values{"imagePullSecrets": []any{"registry"}}}, []string{"/pvController/imagePullSecrets/0", "want object"}},
		"recycling in quotes":           {values{"pvController": values{"recycler": "true"}}, []string{"/pvController/recycler", "want boolean"}},
		"tag as digest":                 {values{"pvController": values{"image": values{"digest": "v1"}}}, []string{"/pvController/image/digest", "pattern"}},
		"driver as a map":               {values{"admissionPolicy": values{"drivers": values{"a": ""}}}, []string{"/admissionPolicy/drivers", "want array"}},
		"accounts and a deployment": {provisioner(values{
			"serviceAccounts": []any{values{"name": "a", "namespace": "b"}}, "deployment": values{"enabled": true},
		}), []string{"leave provisioner.serviceAccounts empty"}},
		"a deployment without rights": {off(values{"deployment": values{"enabled": true}}), []string{"provisioner.enabled is false", "provisioner.deployment.enabled"}},
		"secrets without rights":      {off(values{"secrets": true}), []string{"provisioner.enabled is false", "provisioner.secrets"}},
		"audits without rights":       {off(values{"audit": true}), []string{"provisioner.enabled is false", "provisioner.audit"}},
		"accounts without rights":     {off(values{"serviceAccounts": []any{values{"name": "a", "namespace": "b"}}}), []string{"provisioner.enabled is false", "provisioner.serviceAccounts"}},
	}
}

// invalidOptionalValues are values of optional programs that are refused, and the error says this.
func invalidOptionalValues() map[string]invalidValue {
	terminator := func(v values) values {
		v["enabled"] = true
		return values{"nodeTerminator": v}
	}
	return map[string]invalidValue{
		"driver named like a program": {values{"provisioner": values{"deployment": values{"driver": values{"name": "node-terminator"}}}}, []string{"/provisioner/deployment/driver/name", "not"}},
		"gates of the collector":      {values{"garbageCollector": values{"featureGates": values{}}}, []string{"/garbageCollector", "'featureGates'", "not allowed"}},
		"dry run in quotes":           {values{"garbageCollector": values{"dryRun": "true"}}, []string{"/garbageCollector/dryRun", "want boolean"}},
		"misspelled monitoring":       {values{"monitoring": values{"rules": true}}, []string{"/monitoring", "'rules'", "not allowed"}},
		"two alive-controllers":       {values{"alive": values{"replicas": 2}}, []string{"/alive", "'replicas'", "not allowed"}},
		"unknown instances":           {terminator(values{"instances": "cloud"}), []string{"/nodeTerminator/instances", "'socket'"}},
		"sidecar without image":       {terminator(values{"instances": "socket", "sidecar": values{"name": "a"}}), []string{"/nodeTerminator/sidecar", "'image'"}},
		"socket without a sidecar":    {terminator(values{"instances": "socket"}), []string{"set nodeTerminator.sidecar"}},
		"sidecar without a socket":    {terminator(values{"instances": "manual", "sidecar": values{"name": "a", "image": "b"}}), []string{"nodeTerminator.instances is manual", "leave out nodeTerminator.sidecar"}},
	}
}

// invalidValue has values of the chart, and words of the error about them.
type invalidValue struct {
	values values
	say    []string
}

func TestInvalidChartValuesAreRejected(t *testing.T) {
	cases := invalidValues()
	maps.Copy(cases, invalidOptionalValues())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := render(loaded(t), withRegistry(tc.values))
			if err == nil {
				t.Fatal("the values were accepted")
			}
			for _, want := range tc.say {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

func TestValidNamesAreAccepted(t *testing.T) {
	long := strings.Repeat("d", 63)
	_, err := render(loaded(t),
		withRegistry(values{"provisioner": values{"serviceAccounts": []any{values{"name": "a.with.dots",
			"namespace": long}}}}))
	if err != nil {
		t.Error(err)
	}
	if _, err = render(loaded(t),
		withRegistry(values{"provisioner": values{"deployment": values{"driver": values{"name": long}}}})); err != nil {
		t.Error(err)
	}
}

func TestChartSetsImagePullSecrets(t *testing.T) {
	for _, pod := range podsOf(t, templated(t, everything())) {
		if want := []v1.LocalObjectReference{{Name: "registry"}, {Name: "other.registry"}}; !cmp.Equal(want,
			pod.ImagePullSecrets) {
			t.Errorf("the pod of %s has %v, want %v", pod.Containers[0].Name, pod.ImagePullSecrets, want)
		}
	}
}

// TestChartValuesAreDocumentedAndInSchema compares values.yaml with the schema,
// and checks that every value has a comment unless Kubernetes defines it.
func TestChartValuesAreDocumentedAndInSchema(t *testing.T) {
	c := loaded(t)
	var schema map[string]any
	if err := json.Unmarshal(c.Schema, &schema); err != nil {
		t.Fatalf("read schema: %v", err)
	}
	inSchema := slices.DeleteFunc(properties(schema, schema, ""), func(path string) bool { return path == "global" })
	if diff := cmp.Diff(inSchema, paths(c.Values, schema, schema, "")); diff != "" {
		t.Errorf("values of the schema (-) and of values.yaml (+):\n%s", diff)
	}
	selfEvident := []string{"repository", "pullPolicy", "priorityClassName", "resources", "nodeSelector", "tolerations",
		"affinity", "image", "name", "args", "deployment", "driver"}
	lines := strings.Split(string(rawValues(t)), "\n")
	for i, line := range lines {
		key, _, isKey := strings.Cut(strings.TrimSpace(line), ":")
		if !isKey || strings.HasPrefix(key, "#") || strings.HasPrefix(key, "-") || slices.Contains(selfEvident, key) {
			continue
		}
		inResources := strings.Contains(line, "cpu:") || strings.Contains(line, "memory:") || key == "requests"
		if above := strings.TrimSpace(lines[max(i-1, 0)]); !inResources && !strings.HasPrefix(above, "#") {
			t.Errorf("line %d of values.yaml, %s, has no comment above it", i+1, key)
		}
	}
}

func rawValues(t *testing.T) []byte {
	t.Helper()
	for _, file := range loaded(t).Raw {
		if file.Name == "values.yaml" {
			return file.Data
		}
	}
	t.Fatal("the chart has no values.yaml")
	return nil
}

// resolve returns the definition that a reference in the schema names.
func resolve(root map[string]any, node any) map[string]any {
	object, _ := node.(map[string]any)
	if reference, ok := object["$ref"].(string); ok {
		return root["$defs"].(map[string]any)[strings.TrimPrefix(reference, "#/$defs/")].(map[string]any)
	}
	return object
}

// closed reports whether a schema allows no other properties.
func closed(node map[string]any) bool {
	return node["additionalProperties"] == false && node["properties"] != nil
}

// properties returns the paths of all values in the schema, except fields that Kubernetes
// defines.
func properties(root, node map[string]any, prefix string) []string {
	var found []string
	known, _ := node["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		child := resolve(root, known[name])
		if closed(child) && name != "resources" {
			found = append(found, properties(root, child, prefix+name+".")...)
			continue
		}
		found = append(found, prefix+name)
	}
	return found
}

// paths returns the paths of the given values, to the same depth.
func paths(given, root, node map[string]any, prefix string) []string {
	var found []string
	known, _ := node["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		child := resolve(root, known[name])
		inner, isObject := given[name].(map[string]any)
		if isObject && closed(child) && name != "resources" {
			found = append(found, paths(inner, root, child, prefix+name+".")...)
			continue
		}
		found = append(found, prefix+name)
	}
	return found
}
