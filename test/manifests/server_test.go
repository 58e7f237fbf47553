package manifests

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// binaries returns the folder of the programs.
func binaries() sandbox.Binaries {
	if dir := os.Getenv("EXEUNT_BIN"); dir != "" {
		return sandbox.Binaries{Dir: dir}
	}
	return sandbox.Binaries{Dir: filepath.Join("..", "..", "bin")}
}

// renderings returns the manifests that administrators apply.
func renderings(t *testing.T) map[string][]*unstructured.Unstructured {
	t.Helper()
	found := map[string][]*unstructured.Unstructured{
		"both programs":            kustomized(t, "."),
		"mock driver overlay":      kustomized(t, "overlays/csimock"),
		"component for secrets":    kustomized(t, "provisioner/secrets"),
		"component for audits":     kustomized(t, "provisioner/audit"),
		"component for recycling":  kustomized(t, "pv-controller/recycler"),
		"garbage collector":        kustomized(t, "garbage-collector"),
		"node terminator":          kustomized(t, "node-terminator"),
		"terminator, by hand":      terminatorWith(t, "manual"),
		"terminator, by socket":    terminatorWith(t, "socket"),
		"alive":                    kustomized(t, "alive"),
		"alive, armed":             kustomized(t, "alive/armed"),
		"NodeClaims":               kustomized(t, "node-terminator/nodeclaim"),
		"swap for csi-provisioner": kustomized(t, "overlays/example"),
		"chart":                    templated(t, values{}),
		"chart with a driver":      templated(t, values{"provisioner": values{"deployment": values{"enabled": true}}}),
		"chart with every value":   templated(t, everything()),
		"chart with service accounts": templated(t,
			values{"provisioner": values{"serviceAccounts": []any{values{"name": "controller", "namespace": "storage"}}}}),
	}
	maps.Copy(found, documented(t))
	return found
}

// without returns the values but the one of the name.
func without(v values, name string) values {
	delete(v, name)
	return v
}

// everything sets every value that is empty by default.
func everything() values {
	place := func(v values) values {
		v["nodeSelector"] = values{"node-role.kubernetes.io/control-plane": ""}
		v["tolerations"] = []any{values{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}}
		v["resources"] = values{"requests": values{"cpu": "20m"}, "limits": values{"memory": "256Mi"}}
		v["featureGates"] = values{"HonorPVReclaimPolicy": false}
		v["env"] = []any{values{"name": "HTTPS_PROXY", "value": "http://proxy.example.com"}}
		v["podAnnotations"] = values{"example.com/scrape": "yes"}
		v["imagePullSecrets"] = []any{values{"name": "registry"}, values{"name": "other.registry"}}
		return v
	}
	return values{
		"admissionPolicy": values{"enabled": true, "drivers": []any{"driver.example.com"}},
		"monitoring":      values{"dashboard": true, "labels": values{"team": "storage"}},
		// the operator's kinds are not served
		"pvController": place(values{"replicas": 3, "recycler": true, "priorityClassName": "",
			"extraArgs": []any{"--concurrent-claim-syncs=20"}}),
		"garbageCollector": without(place(values{
			"enabled": true, "replicas": 3, "dryRun": true, "priorityClassName": "", "extraArgs": []any{"--concurrent-gc-syncs=10"},
		}), "featureGates"),
		"nodeTerminator": without(place(values{
			"enabled": true, "replicas": 3, "priorityClassName": "", "extraArgs": []any{"--concurrent-node-syncs=10"}, "instances": "socket",
			"sidecar": values{"name": "machines", "image": "machines:v1", "volumeMounts": []any{values{"name": "keys", "mountPath": "/keys"}}},
			"volumes": []any{values{"name": "keys", "emptyDir": values{}}},
		}), "featureGates"),
		"alive": without(place(values{"enabled": true, "priorityClassName": "", "extraArgs": []any{"--kube-api-qps=10"}}),
			"featureGates"),
		"provisioner": values{"secrets": true, "audit": true, "deployment": place(values{
			"enabled": true, "replicas": 2, "extraArgs": []any{"--strict-topology"},
			"driver":  values{"name": "driver", "image": "driver:v1", "volumeMounts": []any{values{"name": "state", "mountPath": "/state"}}},
			"volumes": []any{values{"name": "state", "emptyDir": values{}}},
		})},
	}
}

func TestServerAcceptsRenderedManifestsWithoutWarnings(t *testing.T) {
	server := startServer(t)
	for name, objects := range renderings(t) {
		t.Run(name, func(t *testing.T) {
			for _, object := range objects {
				server.prepareNamespace(t, object)
			}
			for _, object := range objects {
				warnings, err := server.dryRun(t.Context(), object)
				if err != nil {
					t.Errorf("%s: %v", nameOf(object), err)
				}
				for _, warning := range warnings {
					t.Errorf("%s: the server warns: %s", nameOf(object), warning)
				}
			}
		})
	}
}

func TestManifestsUseKnownFlags(t *testing.T) {
	for name, objects := range renderings(t) {
		t.Run(name, func(t *testing.T) { testFlags(t, objects) })
	}
}

// testFlags checks that our programs accept their flags in the objects.
func testFlags(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		for _, c := range containersOf(object) {
			program := map[string]string{"pv-controller": "pv-controller", "csi-provisioner": "provisioner",
				"csimock": "csimock", "garbage-collector": "garbage-collector", "node-terminator": "node-terminator",
				"alive-controller": "alive-controller"}[c.name]
			if program == "" {
				continue
			}
			path, err := binaries().Path(program)
			if err != nil {
				t.Fatal(err)
			}
			if output, err := exec.CommandContext(t.Context(), path, append(c.args, "--help")...).CombinedOutput(); err != nil {
				t.Errorf("%s %v: %v: %s", program, c.args, err, output)
			}
		}
	}
}

// container has the tested fields of a container.
type container struct {
	name, image string
	args        []string
}

// containersOf returns the containers of a workload, none for other objects.
func containersOf(object *unstructured.Unstructured) []container {
	list, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
	var found []container
	for _, entry := range list {
		fields := entry.(map[string]any)
		name, _, _ := unstructured.NestedString(fields, "name")
		image, _, _ := unstructured.NestedString(fields, "image")
		args, _, _ := unstructured.NestedStringSlice(fields, "args")
		found = append(found, container{name, image, args})
	}
	return found
}

// server is a real API server.
type server struct {
	config *rest.Config
	// kubeconfig and home of kubectl.
	kubeconfig, home string

	client   dynamic.Interface
	mapper   *restmapper.DeferredDiscoveryRESTMapper
	warnings *warnings
}

// startServer starts a server of the newest version that stops with the test.
func startServer(t *testing.T) *server {
	t.Helper()
	return startServerIn(t, binaries())
}

// startServerIn starts the server in this folder.
func startServerIn(t *testing.T, folder sandbox.Binaries) *server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	plane, err := sandbox.StartControlPlane(ctx, sandbox.Config{Binaries: folder, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	config := plane.RESTConfig()
	s := &server{config: config, kubeconfig: plane.AdminKubeconfig, home: t.TempDir(), warnings: &warnings{}}
	config.WarningHandlerWithContext = s.warnings
	if s.client, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovered))
	return s
}

// prepareNamespace creates the namespace of an object, which a dry run needs.
func (s *server) prepareNamespace(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	name := object.GetNamespace()
	if name == "" {
		return
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"pod-security.kubernetes.io/warn": "restricted"}},
	}}
	if err := s.apply(t.Context(), namespace); err != nil {
		t.Fatalf("make namespace %s: %v", name, err)
	}
}

func (s *server) apply(ctx context.Context, object *unstructured.Unstructured, dryRun ...string) error {
	resource, err := s.resourceOf(object)
	if err != nil {
		return err
	}
	_, err = resource.Patch(ctx, object.GetName(), "application/apply-patch+yaml", encode(object), metav1.PatchOptions{
		FieldManager: "manifests", FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun,
	})
	return err
}

// resourceOf returns the resource of the server that has the object.
func (s *server) resourceOf(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if object.GetNamespace() != "" {
		return s.client.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
	}
	return s.client.Resource(mapping.Resource), nil
}

func encode(object *unstructured.Unstructured) []byte {
	text, err := object.MarshalJSON()
	if err != nil {
		panic(err) // it was read from text
	}
	return text
}

// dryRun applies an object in a dry run and returns the warnings.
func (s *server) dryRun(ctx context.Context, object *unstructured.Unstructured) ([]string, error) {
	s.warnings.take()
	err := s.apply(ctx, object, metav1.DryRunAll)
	return s.warnings.take(), err
}

// warnings collects the warnings of the server.
type warnings struct {
	mu   sync.Mutex
	text []string
}

// HandleWarningHeaderWithContext records a warning.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}

func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.text
	w.text = nil
	return text
}

// Only the admission policy needs a newer server; all other manifests are the same for every
// supported version.
func TestOlderServersAcceptAllButTheAdmissionPolicy(t *testing.T) {
	rendered := renderings(t)
	for _, version := range []string{"1.34", "1.35"} {
		t.Run(version, func(t *testing.T) {
			server := startServerIn(t, sandbox.Binaries{Dir: filepath.Join(binaries().Dir, "kube-"+version)})
			refused := 0
			for name, objects := range rendered {
				for _, object := range objects {
					server.prepareNamespace(t, object)
				}
				for _, object := range objects {
					warnings, err := server.dryRun(t.Context(), object)
					if strings.HasPrefix(object.GetKind(), "MutatingAdmissionPolicy") && meta.IsNoMatchError(err) {
						refused++
						continue
					}
					if err != nil || len(warnings) > 0 {
						t.Errorf("%s, %s: %v, warnings %q", name, nameOf(object), err, warnings)
					}
				}
			}
			if refused == 0 {
				t.Error("no rendering has the admission policy, so that nothing is refused")
			}
		})
	}
}
