package protection

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/pvcache"
)

// emptyServer answers the requests of a client after the latency: it has no pod, and
// accepts each patch of a claim.
type emptyServer struct {
	latency        time.Duration
	lists, patches atomic.Int32
}

func (s *emptyServer) RoundTrip(request *http.Request) (*http.Response, error) {
	<-time.After(s.latency)
	var answer any = &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	if request.Method == http.MethodPatch {
		s.patches.Add(1)
		namespace := strings.Split(request.URL.Path, "/")[4]
		answer = claimOf(inDeletion, unprotected, func(c *v1.PersistentVolumeClaim) {
			c.Namespace, c.UID = namespace, types.UID(strings.Replace(namespace, "ns", "uid", 1))
			c.ResourceVersion = "2"
		})
	} else {
		s.lists.Add(1)
	}
	body, err := json.Marshal(answer)
	return &http.Response{
		StatusCode: http.StatusOK, Request: request, Body: io.NopCloser(bytes.NewReader(body)),
		Header: http.Header{"Content-Type": {"application/json"}},
	}, err
}

// Lists and writes wait in one queue, so that a write of many claims waits longer than its
// list took.
func TestDeletedClaimsOfManyNamespacesLoseProtection(t *testing.T) {
	const claims = 300
	for name, tc := range map[string]struct {
		qps     float32 // 0 for no limit
		latency time.Duration
	}{
		"--kube-api-qps=20": {20, 0},
		"slow API server":   {0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &emptyServer{latency: tc.latency}
				limit := tc.qps
				if limit == 0 {
					limit = -1
				}
				client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://server", Transport: server, QPS: limit,
					Burst: int(tc.qps)})
				if err != nil {
					t.Fatal(err)
				}
				c := newProgressing(t, client, claims)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				c.Run(ctx, 16)
				if lists, patches := server.lists.Load(), server.patches.Load(); lists != claims || patches != claims {
					t.Errorf("%d claims took %d lists and %d patches, want one each per claim", claims, lists, patches)
				}
			})
		})
	}
}

// newProgressing returns a controller whose queue has so many deleted claims, each in a
// namespace of its own.
func newProgressing(t *testing.T, client kubernetes.Interface, claims int) *Controller {
	t.Helper()
	caches, err := pvcache.New(informers.NewSharedInformerFactory(client, 0))
	if err != nil {
		t.Fatal(err)
	}
	c := New(Config{Client: client, Caches: caches, Versions: controller.NewVersions()})
	for i := range claims {
		claim := claimOf(inDeletion, func(c *v1.PersistentVolumeClaim) {
			c.Namespace, c.UID = fmt.Sprint("ns-", i), types.UID(fmt.Sprint("uid-", i))
		})
		if err := caches.Claims.GetStore().Add(claim); err != nil {
			t.Fatal(err)
		}
		c.loop.Enqueue(controller.Key(claim))
	}
	return c
}
