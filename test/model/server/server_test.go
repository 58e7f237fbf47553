package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/exeunt-io/exeunt/test/model/server"
)

const (
	volumes = "/api/v1/persistentvolumes"
	claims  = "/api/v1/namespaces/shop/persistentvolumeclaims"
	leases  = "/apis/coordination.k8s.io/v1/namespaces/shop/leases"
	pods    = "/api/v1/namespaces/shop/pods"

	jsonPatch  = "application/json-patch+json"
	mergePatch = "application/merge-patch+json"
)

// step is a request and what its answer has.
type step struct {
	method, path, contentType, body string
	code                            int
	// has and lacks are texts that the answer has and lacks.
	has, lacks string
}

// newVolume and newClaim are the bodies of new objects.
const (
	newVolume = `{"metadata":{"name":"pv"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1024Mi"},"csi":{"driver":"d","volumeHandle":"h"}}}`
	newClaim  = `{"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}},"storageClassName":""}}`
)

var createVolume = step{method: "POST", path: volumes, body: newVolume, code: 201, has: `"phase":"Pending"`}

var scenarios = map[string][]step{
	"name is taken once": {
		createVolume,
		{method: "POST", path: volumes, body: newVolume, code: 409, has: `"reason":"AlreadyExists"`},
	},
	"new volume is completed": {
		createVolume,
		{method: "GET", path: volumes + "/pv", code: 200, has: `"finalizers":["kubernetes.io/pv-protection"]`},
		{method: "GET", path: volumes + "/pv", code: 200, has: `"storage":"1Gi"`},
		{method: "GET", path: volumes + "/pv", code: 200, has: `"uid":"uid-persistentvolumes-pv-1"`},
	},
	"failed test is Invalid without causes": {
		createVolume,
		{"PATCH", volumes + "/pv", jsonPatch, `[{"op":"test","path":"/metadata/uid","value":"x"}]`, 422, `"reason":"Invalid"`, "causes"},
	},
	"status is written by its subresource only": {
		createVolume,
		{"PATCH", volumes + "/pv", mergePatch, `{"status":{"phase":"Bound"}}`, 200, `"phase":"Pending"`, ""},
		{"PATCH", volumes + "/pv/status", mergePatch, `{"status":{"phase":"Bound"},"spec":{"claimRef":{"name":"c"}}}`, 200, `"phase":"Bound"`, "claimRef"},
	},
	"finalizer keeps a deleted object": {
		createVolume,
		{method: "DELETE", path: volumes + "/pv", code: 200, has: `"deletionTimestamp"`},
		{method: "DELETE", path: volumes + "/pv", code: 200, has: `"resourceVersion":"2"`},
		{"PATCH", volumes + "/pv", mergePatch, `{"metadata":{"finalizers":["kubernetes.io/pv-protection","a/b"]}}`, 422, `"field":"metadata.finalizers"`, ""},
		{"PATCH", volumes + "/pv", mergePatch, `{"metadata":{"deletionTimestamp":null}}`, 200, `"deletionTimestamp"`, ""},
		{"PATCH", volumes + "/pv", mergePatch, `{"metadata":{"finalizers":null}}`, 200, `"resourceVersion":"2"`, "finalizers"},
		{method: "GET", path: volumes + "/pv", code: 404, has: `"reason":"NotFound"`},
		{method: "POST", path: volumes, body: newVolume, code: 201, has: `"resourceVersion":"4"`},
		{method: "GET", path: volumes + "/pv", code: 200, has: `"uid":"uid-persistentvolumes-pv-2"`},
	},
	"preconditions of a deletion": {
		createVolume,
		{"DELETE", volumes + "/pv", "", `{"preconditions":{"uid":"x"}}`, 409, `"reason":"Conflict"`, ""},
		{"DELETE", volumes + "/pv", "", `{"preconditions":{"resourceVersion":"7"}}`, 409, `"reason":"Conflict"`, ""},
		{"DELETE", volumes + "/pv", "", `{"preconditions":{"uid":"uid-persistentvolumes-pv-1","resourceVersion":"1"}}`, 200, "deletionTimestamp", ""},
	},
	"stale version conflicts": {
		createVolume,
		{"PATCH", volumes + "/pv", mergePatch, `{"metadata":{"labels":{"a":"b"},"resourceVersion":"1"}}`, 200, `"resourceVersion":"2"`, ""},
		{"PATCH", volumes + "/pv", mergePatch, `{"metadata":{"labels":{"a":"c"},"resourceVersion":"1"}}`, 409, `"reason":"Conflict"`, ""},
		{"PATCH", volumes + "/pv", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`, 200, `"resourceVersion":"2"`, ""},
	},
	"UID of another object conflicts": {
		createVolume,
		{"PUT", volumes + "/pv", "", strings.Replace(newVolume, `"name":"pv"`, `"name":"pv","uid":"x"`, 1), 409, `"reason":"Conflict"`, ""},
	},
	"source of a volume is immutable": {
		createVolume,
		{"PATCH", volumes + "/pv", mergePatch, `{"spec":{"csi":{"volumeHandle":"other"}}}`, 422, `"field":"spec.persistentvolumesource"`, ""},
		{"PATCH", volumes + "/pv", mergePatch, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`, 200, `"Delete"`, ""},
	},
	"claim is bound to one volume": {
		{method: "POST", path: claims, body: newClaim, code: 201, has: "kubernetes.io/pvc-protection"},
		{"PATCH", claims + "/c", mergePatch, `{"spec":{"volumeName":"pv"}}`, 200, `"volumeName":"pv"`, ""},
		{"PATCH", claims + "/c", mergePatch, `{"spec":{"volumeName":"other"}}`, 422, `"field":"spec"`, ""},
		{"PATCH", claims + "/c", mergePatch, `{"spec":{"storageClassName":"gold"}}`, 422, `"field":"spec"`, ""},
	},
	"lease needs a version, or is created": {
		{"PUT", leases + "/l", "", `{"metadata":{"name":"l"},"spec":{"holderIdentity":"a"}}`, 201, `"resourceVersion":"1"`, ""},
		{"PUT", leases + "/l", "", `{"metadata":{"name":"l"},"spec":{"holderIdentity":"b"}}`, 422, `"field":"metadata.resourceVersion"`, ""},
		{"PUT", leases + "/l", "", `{"metadata":{"name":"l","resourceVersion":"1"},"spec":{"holderIdentity":"b"}}`, 200, `"resourceVersion":"2"`, ""},
		{"DELETE", leases + "/l", "", "", 200, `"status":"Success"`, ""},
	},
	"pod is removed at once": {
		{"POST", pods, "", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}}`, 201, `"phase":"Pending"`, ""},
		{"DELETE", pods + "/p", "", "", 200, "", ""},
		{"GET", pods + "/p", "", "", 404, "", ""},
	},
	"ignored finalizer loses the precondition": {
		{"POST", leases, "", `{"metadata":{"name":"l","finalizers":["orphan"]}}`, 201, "", ""},
		{"DELETE", leases + "/l", "", `{"propagationPolicy":"Background","preconditions":{"resourceVersion":"1"}}`, 409, `"reason":"Conflict"`, ""},
		{"DELETE", leases + "/l", "", `{"propagationPolicy":"Background"}`, 200, `"status":"Success"`, ""},
	},
	"second deletion of a pod removes it as stored": {
		{"POST", pods, "", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}}`, 201, "", ""},
		{"DELETE", pods + "/p", "", `{"propagationPolicy":"Orphan"}`, 200, `"finalizers":["orphan"]`, ""},
		{"DELETE", pods + "/p", "", `{"propagationPolicy":"Background"}`, 200, `"finalizers":["orphan"]`, ""},
		{"GET", pods + "/p", "", "", 404, "", ""},
	},
	"terminating namespace takes no objects": {
		{"POST", "/api/v1/namespaces", "", `{"metadata":{"name":"shop"}}`, 201, `"phase":"Active"`, ""},
		{"POST", claims, "", newClaim, 201, "", ""},
		{"DELETE", "/api/v1/namespaces/shop", "", "", 200, `"phase":"Terminating"`, ""},
		{"POST", claims, "", strings.Replace(newClaim, `"c"`, `"d"`, 1), 403, "NamespaceTerminating", ""},
		{"PUT", "/api/v1/namespaces/shop/finalize", "", `{"metadata":{"name":"shop"},"spec":{}}`, 200, "", ""},
		{"DELETE", "/api/v1/namespaces/shop", "", "", 404, "", ""},
	},
	"first write of a claim stores its phase": {
		{"POST", claims, "", newClaim, 201, `"resourceVersion":"1"`, ""},
		{"PATCH", claims + "/c", mergePatch, `{}`, 200, `"resourceVersion":"2"`, ""},
		{"PATCH", claims + "/c", mergePatch, `{}`, 200, `"resourceVersion":"2"`, ""},
	},
	"first reset of managed fields is a write": {
		{"POST", leases, "", `{"metadata":{"name":"l"}}`, 201, "", ""},
		{"PUT", leases + "/l", "", `{"metadata":{"name":"l","resourceVersion":"1"}}`, 200, `"resourceVersion":"1"`, ""},
		{"PUT", leases + "/l", "", `{"metadata":{"name":"l","resourceVersion":"1","managedFields":[{}]}}`, 200, `"resourceVersion":"2"`, "managedFields"},
		{"PUT", leases + "/l", "", `{"metadata":{"name":"l","resourceVersion":"2","managedFields":[{}]}}`, 200, `"resourceVersion":"2"`, ""},
	},
	"default class is set": {
		{"POST", "/apis/storage.k8s.io/v1/storageclasses", "",
			`{"metadata":{"name":"gold","annotations":{"storageclass.kubernetes.io/is-default-class":"true"}},"provisioner":"p"}`, 201, "", ""},
		{"POST", claims, "", strings.Replace(newClaim, `,"storageClassName":""`, "", 1), 201, `"storageClassName":"gold"`, ""},
		{"GET", "/apis/storage.k8s.io/v1/storageclasses", "", "", 200, `"items":[{"metadata"`, ""},
	},
	"bound claim grows with its class only": {
		{"POST", "/apis/storage.k8s.io/v1/storageclasses", "", `{"metadata":{"name":"gold"},"provisioner":"p","allowVolumeExpansion":true}`, 201, "", ""},
		{"POST", claims, "", newClaim, 201, "", ""},
		{"POST", claims, "", strings.NewReplacer(`"c"`, `"d"`, `Name":""`, `Name":"gold"`).Replace(newClaim), 201, "", ""},
		{"PATCH", claims + "/c", mergePatch, `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`, 422, `"field":"spec"`, ""},
		{"PATCH", claims + "/c/status", mergePatch, `{"status":{"phase":"Bound"}}`, 200, "", ""},
		{"PATCH", claims + "/c", mergePatch, `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`, 403, `"reason":"Forbidden"`, ""},
		{"PATCH", claims + "/d/status", mergePatch, `{"status":{"phase":"Bound"}}`, 200, "", ""},
		{"PATCH", claims + "/d", mergePatch, `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`, 200, `"2Gi"`, ""},
	},
	"events are dropped": {
		{"POST", "/api/v1/namespaces/shop/events", "", `{"metadata":{"name":"e"}}`, 201, `"name":"e"`, ""},
		{"GET", "/api/v1/namespaces/shop/events/e", "", "", 404, "", ""},
	},
	"every access is allowed": {
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", `{"spec":{"resourceAttributes":{"verb":"get"}}}`, 201, `"allowed":true`, ""},
	},
	"list has the objects of a namespace": {
		{method: "POST", path: claims, body: newClaim, code: 201},
		{method: "POST", path: "/api/v1/namespaces/bank/persistentvolumeclaims", body: newClaim, code: 201},
		{method: "GET", path: claims, code: 200, has: `"namespace":"shop"`, lacks: `"namespace":"bank"`},
		{method: "GET", path: "/api/v1/persistentvolumeclaims", code: 200, has: `"namespace":"bank"`},
	},
}

func TestServe(t *testing.T) {
	for name, steps := range scenarios {
		t.Run(name, func(t *testing.T) {
			serve(t, steps)
		})
	}
}

func serve(t *testing.T, steps []step) {
	t.Helper()
	cluster := server.NewCluster()
	for i, s := range steps {
		var answer server.Response
		cluster, answer = cluster.Serve(server.Request{Method: s.method, Path: s.path, ContentType: s.contentType,
			Body: s.body})
		if answer.Code != s.code || !strings.Contains(answer.Body, s.has) || s.lacks != "" &&
			strings.Contains(answer.Body, s.lacks) {
			t.Fatalf("step %d: %s %s %s\ngot  %d %s\nwant %d with %q, without %q", i+1, s.method, s.path, s.body, answer.Code,
				answer.Body, s.code, s.has, s.lacks)
		}
	}
}

func TestClusterNeverChanges(t *testing.T) {
	before, _ := server.NewCluster().Serve(server.Request{Method: "POST", Path: volumes, Body: newVolume})
	object, _ := before.Get(server.Key{Resource: "persistentvolumes", Name: "pv"})
	before.Serve(server.Request{Method: "DELETE", Path: volumes + "/pv"})
	if now, _ := before.Get(object.Key); now != object {
		t.Errorf("object changed from %+v to %+v", object, now)
	}
}

func TestNewClusterSortsItsObjects(t *testing.T) {
	a, b := server.Object{Key: server.Key{Resource: "leases", Name: "a"}},
		server.Object{Key: server.Key{Resource: "leases", Name: "b"}}
	if got := server.NewCluster(b, a).Objects(); !slices.Equal(got, []server.Object{a, b}) {
		t.Errorf("got %v", got)
	}
}

func TestKeyOf(t *testing.T) {
	for name, tc := range map[string]struct {
		request server.Request
		want    server.Key
		ok      bool
	}{
		"object": {server.Request{Method: "GET", Path: volumes + "/pv"}, server.Key{Resource: "persistentvolumes", Name: "pv"}, true},
		"subresource": {server.Request{Method: "PATCH", Path: claims + "/c/status"},
			server.Key{Resource: "persistentvolumeclaims", Namespace: "shop", Name: "c"}, true},
		"new object": {server.Request{Method: "POST", Path: claims, Body: newClaim},
			server.Key{Resource: "persistentvolumeclaims", Namespace: "shop", Name: "c"}, true},
		"list":      {server.Request{Method: "GET", Path: claims}, server.Key{Resource: "persistentvolumeclaims", Namespace: "shop"}, false},
		"namespace": {server.Request{Method: "GET", Path: "/api/v1/namespaces/shop"}, server.Key{Resource: "namespaces", Name: "shop"}, true},
		"unknown":   {server.Request{Method: "GET", Path: "/api/v1/limitranges/s"}, server.Key{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, ok := server.KeyOf(tc.request); got != tc.want || ok != tc.ok {
				t.Errorf("got %+v, %v, want %+v, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}

func TestRememberedWriteHasTheSameEffect(t *testing.T) {
	cluster, _ := server.NewCluster().Serve(server.Request{Method: "POST", Path: volumes, Body: newVolume})
	for _, request := range []server.Request{
		{Method: "PATCH", Path: volumes + "/pv", ContentType: mergePatch, Body: `{"metadata":{"labels":{"a":"b"}}}`},
		{Method: "PATCH", Path: volumes + "/pv", ContentType: mergePatch, Body: `{}`},
		{Method: "PUT", Path: volumes + "/pv", Body: `{}`},
		{Method: "DELETE", Path: volumes + "/pv"},
	} {
		once, answer := cluster.Serve(request)
		twice, again := cluster.Serve(request)
		if !slices.Equal(once.Objects(), twice.Objects()) || answer != again {
			t.Errorf("%s: first %v %v, then %v %v", request.Method, once.Objects(), answer, twice.Objects(), again)
		}
	}
}

// BenchmarkPatch patches as [server.Cluster{}] does, which remembers nothing.
func BenchmarkPatch(b *testing.B) {
	cluster, _ := server.Cluster{}.Serve(server.Request{Method: "POST", Path: volumes, Body: newVolume})
	benchmarkPatch(b, cluster)
}

func BenchmarkRememberedPatch(b *testing.B) {
	cluster, _ := server.NewCluster().Serve(server.Request{Method: "POST", Path: volumes, Body: newVolume})
	benchmarkPatch(b, cluster)
}

func benchmarkPatch(b *testing.B, cluster server.Cluster) {
	for b.Loop() {
		cluster.Serve(server.Request{
			Method: "PATCH", Path: volumes + "/pv/status", ContentType: jsonPatch,
			Body: `[{"op":"test","path":"/metadata/uid","value":"uid-persistentvolumes-pv-1"},{"op":"add","path":"/status/phase","value":"Available"}]`,
		})
	}
}

func BenchmarkGet(b *testing.B) {
	cluster, _ := server.NewCluster().Serve(server.Request{Method: "POST", Path: volumes, Body: newVolume})
	for b.Loop() {
		cluster.Serve(server.Request{Method: "GET", Path: volumes + "/pv"})
	}
}
