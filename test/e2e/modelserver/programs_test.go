package modelserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/model/server"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

func TestRequestsOfProgramsAreAnsweredAlike(t *testing.T) {
	s := harness.Own(t, harness.Setup{NoPrograms: true}, harness.Within(2*harness.Timeout))
	c := newComparison(s)
	for _, start := range []func(context.Context, sandbox.Controller) (*sandbox.Process, error){
		s.Plane.StartPVController,
		func(ctx context.Context, how sandbox.Controller) (*sandbox.Process, error) {
			return s.Plane.StartProvisioner(ctx, s.Driver, how)
		},
	} {
		process, err := start(s.Ctx, sandbox.Controller{HonorReclaimPolicy: true, Kubeconfig: c.kubeconfig})
		s.Must(err, "start program")
		s.Add(process)
	}
	for range 2 { // the second claim has the name of the first
		s.CreateClaim("dynamic", harness.DeleteClass)
		volume := s.AwaitBound("dynamic")
		s.DeleteVolume(volume.Name)
		s.DeleteClaim("dynamic")
		s.AwaitVolumeGone(volume.Name)
	}
	s.CreateVolume(s.CreateStoredVolume("static"), v1.PersistentVolumeReclaimRetain)
	s.CreateClaim("static", s.Namespace)
	volume := s.AwaitBound("static")
	s.DeleteClaim("static")
	s.AwaitVolume(volume.Name, "is Released",
		func(v *v1.PersistentVolume) bool { return v.Status.Phase == v1.VolumeReleased })
	s.SetPolicy(volume.Name, v1.PersistentVolumeReclaimDelete)
	s.AwaitVolumeGone(volume.Name)
	_, err := s.Client.CoordinationV1().Leases(deploy.Namespace).List(s.Ctx, metav1.ListOptions{})
	s.Must(err, "list leases")
	c.report(t)
}

// comparison is a proxy that answers as kube-apiserver does, sends each request to the
// model too, and compares. Requests are served one after another, watches excepted.
type comparison struct {
	kubeconfig string
	forward    http.Handler

	mu          sync.Mutex
	pair        *pair
	differences []string
	compared    map[string]int // requests by method and resource
}

// newComparison starts the proxy. The client of the session goes through it.
func newComparison(s *harness.Session) *comparison {
	s.T.Helper()
	p, err := newPair(s.Plane.RESTConfig(), "")
	s.Must(err, "connect to API server")
	transport, err := rest.TransportFor(s.Plane.RESTConfig())
	s.Must(err, "make transport")
	target, err := url.Parse(p.host)
	s.Must(err, "parse address of the API server")
	c := &comparison{pair: p, compared: map[string]int{}, kubeconfig: filepath.Join(s.T.TempDir(), "kubeconfig")}
	c.forward = &httputil.ReverseProxy{Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	proxy := httptest.NewServer(c)
	s.T.Cleanup(proxy.CloseClientConnections)
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["proxy"] = &clientcmdapi.Cluster{Server: proxy.URL}
	kubeconfig.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	kubeconfig.CurrentContext = "proxy"
	s.Must(clientcmd.WriteToFile(*kubeconfig, c.kubeconfig), "write kubeconfig of the proxy")
	config, err := sandbox.LoadConfig(c.kubeconfig)
	s.Must(err, "load kubeconfig")
	s.Client, err = kubernetes.NewForConfig(config)
	s.Must(err, "make client")
	return c
}

// comparedPath has the resources whose objects are all written through the proxy.
var comparedPath = regexp.MustCompile(`/(persistentvolumes|persistentvolumeclaims|pods|volumeattachments|leases)(/|$)`)

// ServeHTTP implements [http.Handler].
func (c *comparison) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !comparedPath.MatchString(r.URL.Path) || r.URL.Query().Has("watch") ||
		strings.Contains(r.Header.Get("Accept"), "as=") {
		c.forward.ServeHTTP(w, r)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	answer, err := c.serve(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		c.differences = append(c.differences, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer.Code)
	_, _ = io.WriteString(w, answer.Body)
}

func (c *comparison) serve(r *http.Request) (server.Response, error) {
	body, err := bodyAsJSON(r)
	if err != nil {
		return server.Response{}, err
	}
	inReal := server.Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
		ContentType: r.Header.Get("Content-Type"), Body: body}
	if strings.Contains(inReal.ContentType, "protobuf") {
		inReal.ContentType = "application/json"
	}
	inModel := inReal
	inModel.Path, inModel.Body = c.pair.toModel(inReal.Path), c.pair.toModelRequest(inReal.Body)
	actual, err := c.pair.sendReal(context.WithoutCancel(r.Context()), inReal)
	if err != nil {
		return server.Response{}, err
	}
	var model server.Response
	c.pair.cluster, model = c.pair.cluster.Serve(inModel)
	key, _ := server.KeyOf(inModel)
	c.compared[r.Method+" "+key.Resource]++
	if err := c.pair.compare(model, actual); err != nil {
		c.differences = append(c.differences, fmt.Sprintf("%s %s %s: %v", inModel.Method, inModel.Path, inModel.Body, err))
	}
	return actual, nil
}

// bodyAsJSON returns the body, in JSON if it is an object in protobuf.
func bodyAsJSON(r *http.Request) (string, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", fmt.Errorf("read request: %w", err)
	}
	if len(body) == 0 || !strings.Contains(r.Header.Get("Content-Type"), "protobuf") {
		return string(body), nil
	}
	object, kind, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return "", fmt.Errorf("decode request: %w", err)
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	body, err = json.Marshal(object)
	if err != nil {
		return "", fmt.Errorf("encode request: %w", err)
	}
	return string(body), nil
}

// realTimes are times that kube-apiserver set, as clients send them back.
var realTimes = regexp.MustCompile(`"(creationTimestamp|deletionTimestamp|lastPhaseTransitionTime)":"[^"]+"`)

// toModelRequest translates a request for the real server.
func (n *names) toModelRequest(body string) string {
	body = realTimes.ReplaceAllString(body, `"$1":"`+server.Now+`"`)
	return n.toModel(body)
}

// report fails the test if an answer differed, or if a kind of request was not sent.
func (c *comparison) report(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, difference := range c.differences {
		t.Error(difference)
	}
	for _, request := range []string{
		"GET persistentvolumes", "POST persistentvolumes", "PATCH persistentvolumes", "DELETE persistentvolumes",
		"GET persistentvolumeclaims", "POST persistentvolumeclaims", "PATCH persistentvolumeclaims",
		"DELETE persistentvolumeclaims",
		"GET pods", "GET leases",
	} {
		if c.compared[request] == 0 {
			t.Errorf("no request %s was compared", request)
		}
	}
	t.Log("compared requests:", c.compared)
}
