package programs

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/faultproxy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// admin may do everything, as the programs may with their own objects.
var admin = sandbox.User("faultproxy-test", "system:masters")

// connection is a client behind a proxy.
type connection struct {
	*harness.Session
	proxy  *faultproxy.Proxy
	behind kubernetes.Interface

	mu     sync.Mutex
	faults []faultproxy.Fault
}

// connect returns a client behind a proxy.
func connect(s *harness.Session, config faultproxy.Config) *connection {
	s.T.Helper()
	c := &connection{Session: s}
	config.Program = "test"
	config.Log = func(fault faultproxy.Fault) {
		c.mu.Lock()
		defer c.mu.Unlock()
		fault.Time = time.Time{}
		c.faults = append(c.faults, fault)
	}
	var file string
	c.proxy, file = s.NewFaultProxy(admin, config)
	loaded, err := sandbox.LoadConfig(file)
	s.Must(err, "load kubeconfig")
	c.behind, err = kubernetes.NewForConfig(loaded)
	s.Must(err, "make client")
	return c
}

// seen returns the faults so far.
func (c *connection) seen() []faultproxy.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.faults)
}

func join(t *testing.T) *harness.Session {
	return harness.Join(t, harness.Setup{NoPrograms: true}, harness.Within(3*harness.Timeout))
}

func TestLostAnswerMeansWriteTookEffect(t *testing.T) {
	s := join(t)
	for _, kind := range []faultproxy.Kind{faultproxy.CutAfter, faultproxy.ErrorAfter, faultproxy.TimeoutAfter} {
		c := connect(s, faultproxy.Config{Rates: faultproxy.Rates{Faults: map[faultproxy.Kind]float64{kind: 1}}})
		direct, behind := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace),
			c.behind.CoreV1().PersistentVolumeClaims(s.Namespace)
		name := string(kind)
		if _, err := behind.Create(s.Ctx, s.NewClaim(name, harness.DeleteClass), metav1.CreateOptions{}); err == nil {
			t.Errorf("%s: create was answered", kind)
		}
		claim, err := direct.Get(s.Ctx, name, metav1.GetOptions{})
		s.Must(err, "get claim after a lost answer")
		claim.Labels = map[string]string{"updated": "yes"}
		if _, err := behind.Update(s.Ctx, claim, metav1.UpdateOptions{}); err == nil {
			t.Errorf("%s: update was answered", kind)
		}
		updated, err := direct.Get(s.Ctx, name, metav1.GetOptions{})
		s.Must(err, "get claim after a lost answer")
		if updated.Labels["updated"] != "yes" {
			t.Errorf("%s: the update had no effect: %v", kind, updated.ObjectMeta)
		}
		if err := behind.Delete(s.Ctx, name, metav1.DeleteOptions{}); err == nil {
			t.Errorf("%s: delete was answered", kind)
		}
		if deleted, err := direct.Get(s.Ctx, name, metav1.GetOptions{}); err == nil && deleted.DeletionTimestamp == nil {
			t.Errorf("%s: the deletion had no effect", kind)
		}
		if got := c.proxy.Stats(); !maps.Equal(got, map[faultproxy.Kind]int{kind: 3}) {
			t.Errorf("faults %v", got)
		}
	}
}

func TestStaleListShowsFormerState(t *testing.T) {
	s := join(t)
	c := connect(s, faultproxy.Config{Rates: faultproxy.Rates{Faults: map[faultproxy.Kind]float64{faultproxy.StaleList: 1}}})
	objects := c.behind.CoreV1().ConfigMaps(s.Namespace)
	first, err := objects.Create(s.Ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	s.Must(err, "create")
	watching, err := objects.Watch(s.Ctx, metav1.ListOptions{ResourceVersion: first.ResourceVersion})
	s.Must(err, "watch")
	defer watching.Stop()
	present := map[string]int{first.ResourceVersion: 1}
	for i := range 5 {
		created, err := objects.Create(s.Ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("b", i)}},
			metav1.CreateOptions{})
		s.Must(err, "create")
		present[created.ResourceVersion] = i + 2
		<-watching.ResultChan()
	}
	stale := 0
	for range 20 {
		now, err := objects.List(s.Ctx, metav1.ListOptions{})
		s.Must(err, "list")
		former, err := objects.List(s.Ctx, metav1.ListOptions{ResourceVersion: "0"})
		s.Must(err, "list any state")
		if len(now.Items) < 6 {
			t.Errorf("a quorum read returned %d objects", len(now.Items))
		}
		want, known := present[former.ResourceVersion]
		if got := own(former.Items); known && got != want {
			t.Errorf("%d objects at version %s, want %d", got, former.ResourceVersion, want)
		}
		if known && want < 6 {
			stale++
		}
	}
	if stale == 0 {
		t.Errorf("20 lists, none stale; faults %v", c.seen())
	}
}

// own counts the objects of the test, which kube-root-ca.crt is not.
func own(items []v1.ConfigMap) int {
	return len(slices.DeleteFunc(items, func(m v1.ConfigMap) bool { return m.Name == "kube-root-ca.crt" }))
}

func TestSameSeedInjectsSameFaults(t *testing.T) {
	s := join(t)
	rates := map[faultproxy.Kind]float64{}
	for _, kind := range []faultproxy.Kind{
		faultproxy.Conflict, faultproxy.CutAfter, faultproxy.ErrorAfter, faultproxy.TimeoutAfter, faultproxy.InternalError,
		faultproxy.Unavailable, faultproxy.Timeout, faultproxy.TooManyRequestsBare, faultproxy.DelayRequest,
		faultproxy.DelayAnswer,
	} {
		rates[kind] = 0.05
	}
	var runs [][]faultproxy.Fault
	for _, seed := range []uint64{1, 1, 2} {
		c := connect(s, faultproxy.Config{Seed: seed, Rates: faultproxy.Rates{Faults: rates},
			MaxDelay: 50 * time.Millisecond})
		for i := range 10 {
			c.useConfigMap(fmt.Sprint("m", i))
		}
		runs = append(runs, c.seen())
		s.Must(s.Client.CoreV1().ConfigMaps(s.Namespace).DeleteCollection(s.Ctx, metav1.DeleteOptions{},
			metav1.ListOptions{}), "delete all")
	}
	if len(runs[0]) < 5 || !slices.Equal(runs[0], runs[1]) {
		t.Errorf("the same seed: %v, then %v", runs[0], runs[1])
	}
	if slices.Equal(runs[0], runs[2]) {
		t.Errorf("another seed injects the same faults: %v", runs[2])
	}
}

// useConfigMap sends one request of each verb, with whatever result.
func (c *connection) useConfigMap(name string) {
	objects := c.behind.CoreV1().ConfigMaps(c.Namespace)
	object, _ := objects.Create(c.Ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	_, _ = objects.Get(c.Ctx, name, metav1.GetOptions{})
	_, _ = objects.List(c.Ctx, metav1.ListOptions{})
	object.Name, object.Namespace = name, c.Namespace
	_, _ = objects.Update(c.Ctx, object, metav1.UpdateOptions{})
	_, _ = objects.Patch(c.Ctx, name, types.MergePatchType, []byte(`{"data":{"a":"b"}}`), metav1.PatchOptions{})
	_ = objects.Delete(c.Ctx, name, metav1.DeleteOptions{})
}
