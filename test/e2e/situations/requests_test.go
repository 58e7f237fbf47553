package situations

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/why"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
)

// maxRequests is how many requests the explanation of a volume, claim or snapshot may send: 22, two more where the
// cluster has admission policies, and two more where another situation has a driver.
const maxRequests = 26

func TestStorageChainsSendFewRequests(t *testing.T) {
	r := &place{Session: harness.Join(t, harness.Setup{NoPrograms: true})}
	r.createNode(r.Namespace, v1.ConditionTrue, 0)
	r.released(func(volume *v1.PersistentVolume) {
		volume.Annotations["volume.kubernetes.io/provisioner-deletion-secret-name"] = "credentials"
		volume.Annotations["volume.kubernetes.io/provisioner-deletion-secret-namespace"] = r.Namespace
	})
	r.attach(r.Namespace+"-disk", r.Namespace, "external-attacher/"+r.leaseName())
	r.createSnapshotPair(true)
	r.deleteOf(contents, "", r.Namespace)
	r.deleteOf(snapshots, r.Namespace, "snapshot")
	r.createClaimOnly("kubernetes.io/pvc-protection", claimAsSource,
		"provisioner.storage.kubernetes.io/cloning-protection")
	r.CreateClaim("clone", r.Namespace, harness.CloneOf("claim"))
	r.deleteClaim()
	for name, ref := range map[string]cluster.Ref{
		"volume":   {Resource: v1.SchemeGroupVersion.WithResource("persistentvolumes"), Kind: "PersistentVolume", Name: r.Namespace + "-disk"},
		"claim":    {Resource: claims, Kind: "PersistentVolumeClaim", Namespace: r.Namespace, Name: "claim"},
		"snapshot": {Resource: snapshots, Kind: "VolumeSnapshot", Namespace: r.Namespace, Name: "snapshot"},
	} {
		t.Run(name, func(t *testing.T) {
			requests := r.requestsOf(ref)
			var objects []string
			for _, path := range requests {
				if !isDiscovery(path) && !r.isOfOtherProgram(path) {
					objects = append(objects, path)
				}
			}
			t.Logf("%d requests, %d with discovery: %s", len(objects), len(requests), strings.Join(objects, "\n"))
			if len(objects) > maxRequests {
				t.Errorf("%d requests, want at most %d", len(objects), maxRequests)
			}
			expectNoListAgain(t, objects)
		})
	}
}

// isOfOtherProgram reports whether the request lists the pods of a program that another situation has left: one list for
// each program that may serve the driver.
func (r *place) isOfOtherProgram(path string) bool {
	return strings.Contains(path, "/pods?labelSelector=") && !strings.Contains(path, "/namespaces/"+r.Namespace+"/")
}

// expectNoListAgain fails the test if a list repeats, or lists a namespace after all namespaces. A selector may follow: of
// the pods of all namespaces only those that run a controller are kept.
func expectNoListAgain(t *testing.T, paths []string) {
	t.Helper()
	read := map[string]bool{}
	for _, path := range paths {
		resource, isList := listed(path)
		if !isList {
			continue
		}
		if all := "/" + resource + "?limit=500"; read[path] || read[all] && !strings.Contains(path, "elector=") {
			t.Errorf("%s is listed, after %v", path, read)
		}
		read[path] = true
		if !strings.Contains(path, "/namespaces/") && !strings.Contains(path, "elector=") {
			read["/"+resource+"?limit=500"] = true
		}
	}
}

// requestsOf explains the object and returns the paths of the requests.
func (r *place) requestsOf(ref cluster.Ref) []string {
	r.T.Helper()
	var mu sync.Mutex
	var paths []string
	config := rest.CopyConfig(r.Plane.RESTConfig())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return recorder(func(request *http.Request) (*http.Response, error) {
			mu.Lock()
			paths = append(paths, request.URL.Path+"?"+request.URL.RawQuery)
			mu.Unlock()
			return next.RoundTrip(request)
		})
	})
	reader, err := cluster.NewReader(config)
	r.Must(err, "connect")
	_, err = why.NewExplorer(reader, cluster.Commands{}, false).Explain(r.Ctx, ref)
	r.Must(err, "explain")
	return paths
}

// recorder is a RoundTripper.
type recorder func(*http.Request) (*http.Response, error)

// RoundTrip sends the request.
func (f recorder) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// isDiscovery reports whether the request asks which kinds are served.
func isDiscovery(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	return len(strings.Split(strings.Trim(path, "/"), "/")) < 3 || strings.HasPrefix(path, "/apis/") &&
		len(strings.Split(strings.Trim(path, "/"), "/")) == 3
}

// listed returns the resource of a list.
func listed(path string) (string, bool) {
	path, query, _ := strings.Cut(path, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	return parts[len(parts)-1], strings.Contains(query, "limit=")
}
