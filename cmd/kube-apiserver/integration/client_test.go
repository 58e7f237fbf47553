package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/recognizer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// server is a client of one API server.
type server struct {
	url    string
	config *rest.Config
	client *http.Client
}

// connect returns the client of the administrator.
func connect(url, kubeconfig string) (*server, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	return &server{url: url, config: config, client: client}, err
}

// as returns the client of another user, whom the administrator impersonates.
func (s *server) as(t *testing.T, user string) *server {
	t.Helper()
	config := rest.CopyConfig(s.config)
	config.Impersonate.UserName = user
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &server{url: s.url, config: config, client: client}
}

// answer is the response to a request.
type answer struct {
	code     int
	body     *unstructured.Unstructured
	text     string
	warnings []string
}

// message returns the message of a Status.
func (a answer) message() string {
	text, _, _ := unstructured.NestedString(a.body.Object, "message")
	return text
}

// do sends a request; the body is JSON, or a value that becomes JSON.
func (s *server) do(t *testing.T, method, path, contentType string, body any) answer {
	t.Helper()
	var reader io.Reader
	switch body := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(body)
	default:
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		reader = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, reader)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	response, err := s.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if object.UnmarshalJSON(text) != nil {
		_ = json.Unmarshal(text, &object.Object) // a list, or no object at all
	}
	return answer{response.StatusCode, object, string(text), response.Header.Values("Warning")}
}

const (
	asJSON  = "application/json"
	asMerge = "application/merge-patch+json"
	asApply = "application/apply-patch+yaml"
)

// definitions is the path of all CRDs.
const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// kind is a kind of custom resources of one test, with the status subresource.
type kind struct {
	t     *testing.T
	group string
	s     *server
	etcd  *clientv3.Client
	// decrypt returns the value of a key as it was before its encryption; nil without encryption.
	decrypt func(key, value string) (string, error)
}

// plainVersion is a version with the status subresource, in which every field is kept.
const plainVersion = `{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},
		"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`

// newKind creates a CRD at an API server and waits until that server serves it.
func newKind(t *testing.T, s *server, group string) kind {
	t.Helper()
	return newKindWith(t, s, group, `"versions":[`+plainVersion+`]`)
}

// crdOf returns a CRD with further fields of its spec.
func crdOf(group, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"machines.%[1]s"},"spec":{
		"group":"%[1]s","scope":"Namespaced","names":{"plural":"machines","singular":"machine","kind":"Machine","listKind":"MachineList"},
		%[2]s}}`, group, spec)
}

// newKindWith creates a CRD with further fields of its spec.
func newKindWith(t *testing.T, s *server, group, spec string) kind {
	t.Helper()
	if got := s.do(t, http.MethodPost, definitions, asJSON, crdOf(group, spec)); got.code != http.StatusCreated {
		t.Fatalf("create the CRD: %d %s", got.code, got.text)
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{shared.endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = etcd.Close() })
	k := kind{t: t, group: group, s: s, etcd: etcd}
	k.at(s).await()
	return k
}

// at returns the same kind at another API server.
func (k kind) at(s *server) kind {
	k.s = s
	return k
}

// await waits until the API server serves the kind.
func (k kind) await() kind {
	k.t.Helper()
	wait(k.t, func() error {
		if got := k.s.do(k.t, http.MethodGet, k.path(""), asJSON, nil); got.code != http.StatusOK {
			return fmt.Errorf("the kind is not served: %d %s", got.code, got.text)
		}
		return nil
	})
	return k
}

func (k kind) path(name string) string {
	return strings.TrimSuffix("/apis/"+k.group+"/v1/namespaces/default/machines/"+name, "/")
}

// create creates an object with finalizers.
func (k kind) create(name string, finalizers ...string) {
	k.t.Helper()
	k.createWith(name, nil, finalizers...)
}

func (k kind) createWith(name string, annotations map[string]string, finalizers ...string) {
	k.t.Helper()
	object := map[string]any{"apiVersion": k.group + "/v1", "kind": "Machine", "metadata": map[string]any{
		"name": name, "finalizers": finalizers, "annotations": annotations,
	}}
	if got := k.s.do(k.t, http.MethodPost, k.path(""), asJSON, object); got.code != http.StatusCreated {
		k.t.Fatalf("create %s: %d %s", name, got.code, got.text)
	}
}

func (k kind) get(name string) answer {
	k.t.Helper()
	return k.s.do(k.t, http.MethodGet, k.path(name), asJSON, nil)
}

// options are further fields of DeleteOptions.
type options map[string]any

// delete deletes an object with a grace period, or without one if the grace period is "".
func (k kind) delete(name string, grace any, more options) answer {
	k.t.Helper()
	body := options{"apiVersion": "v1", "kind": "DeleteOptions"}
	maps.Copy(body, more)
	if grace != "" {
		body["gracePeriodSeconds"] = grace
	}
	return k.s.do(k.t, http.MethodDelete, k.path(name), asJSON, body)
}

func (k kind) patch(name string, patch string) answer {
	k.t.Helper()
	return k.s.do(k.t, http.MethodPatch, k.path(name), asMerge, patch)
}

func (k kind) put(name string, object *unstructured.Unstructured) answer {
	k.t.Helper()
	return k.s.do(k.t, http.MethodPut, k.path(name), asJSON, object.Object)
}

// stored returns the value in etcd and its revision, 0 if there is none.
func (k kind) stored(name string) (string, int64) {
	k.t.Helper()
	key := "/registry/" + k.group + "/machines/default/" + name
	found, err := k.etcd.Get(k.t.Context(), key)
	if err != nil {
		k.t.Fatal(err)
	}
	if len(found.Kvs) == 0 {
		return "", 0
	}
	value := string(found.Kvs[0].Value)
	if k.decrypt != nil {
		if value, err = k.decrypt(key, value); err != nil {
			k.t.Fatal(err)
		}
	}
	return value, found.Kvs[0].ModRevision
}

// inEtcd returns the object as it is stored.
func (k kind) inEtcd(name string) *unstructured.Unstructured {
	k.t.Helper()
	text, _ := k.stored(name)
	decoder := recognizer.NewDecoder(cbor.NewSerializer(unstructuredscheme.NewUnstructuredCreator(),
		unstructuredscheme.NewUnstructuredObjectTyper()), unstructured.UnstructuredJSONScheme)
	decoded, _, err := decoder.Decode([]byte(text), nil, nil)
	object, ok := decoded.(*unstructured.Unstructured)
	if err != nil || !ok {
		k.t.Fatalf("%s in etcd: %v\n%q", name, err, text)
	}
	return object
}
