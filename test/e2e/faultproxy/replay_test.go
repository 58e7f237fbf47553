package faultproxy

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/test/faultproxy"
)

func TestSameSeedInjectsSameFaults(t *testing.T) {
	s := join(t)
	rates := map[faultproxy.Kind]float64{}
	for _, kind := range []faultproxy.Kind{
		faultproxy.Conflict, faultproxy.CutAfter, faultproxy.ErrorAfter, faultproxy.TimeoutAfter, faultproxy.InternalError,
		faultproxy.Unavailable, faultproxy.Timeout, faultproxy.TooManyRequestsBare, faultproxy.DelayRequest, faultproxy.DelayAnswer,
	} {
		rates[kind] = 0.05
	}
	var runs [][]faultproxy.Fault
	for _, seed := range []uint64{1, 1, 2} {
		c := connect(s, faultproxy.Config{Seed: seed, Rates: faultproxy.Rates{Faults: rates}, MaxDelay: 50 * time.Millisecond})
		for i := range 10 {
			c.useConfigMap(fmt.Sprint("m", i))
		}
		runs = append(runs, c.seen())
		s.Must(s.Client.CoreV1().ConfigMaps(s.Namespace).DeleteCollection(s.Ctx, metav1.DeleteOptions{}, metav1.ListOptions{}), "delete all")
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
