package programs

import (
	"fmt"
	"maps"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/core/v1"

	"github.com/exeunt-io/exeunt/test/faultproxy"
)

// TestInformersCatchUpAfterFaults runs informers behind a proxy with high rates while
// objects change. Once the rates are zero, their caches equal the API server.
func TestInformersCatchUpAfterFaults(t *testing.T) {
	for name, noWatchList := range map[string]bool{"watch lists": false, "lists": true} {
		t.Run(name, func(t *testing.T) {
			s := join(t)
			c := connect(s, faultproxy.Config{
				Seed: 7, NoWatchList: noWatchList, MaxDelay: 300 * time.Millisecond, Tick: 100 * time.Millisecond,
				Rates: faultproxy.Rates{Faults: faultproxy.Uniform(0.05)},
			})
			var caches []listers.ConfigMapLister
			changes := 0
			for round := range 8 {
				// A new informer knows nothing, as after a restart, and may list a former state.
				caches = append(caches, c.startInformer())
				s.Until("there are more faults", func() bool {
					c.changeConfigMap(changes)
					changes++
					return len(c.seen()) > 2*round
				})
			}
			c.proxy.SetRates(faultproxy.Rates{})
			want := c.live()
			for _, cache := range caches {
				s.Until("the cache equals the API server", func() bool { return maps.Equal(c.cached(cache), want) })
			}
			t.Logf("%d requests, faults %v", c.proxy.Requests(), c.proxy.Stats())
		})
	}
}

// startInformer returns the cache of an informer behind the proxy.
func (c *connection) startInformer() listers.ConfigMapLister {
	factory := informers.NewSharedInformerFactoryWithOptions(c.behind, 0, informers.WithNamespace(c.Namespace))
	lister := factory.Core().V1().ConfigMaps().Lister()
	factory.StartWithContext(c.Ctx)
	return lister
}

// changeConfigMap creates, updates or deletes an object, without the proxy.
func (c *connection) changeConfigMap(number int) {
	c.T.Helper()
	objects, name := c.Client.CoreV1().ConfigMaps(c.Namespace), fmt.Sprint("m", number%7)
	object, err := objects.Get(c.Ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = objects.Create(c.Ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	case err == nil && number%3 == 0:
		err = objects.Delete(c.Ctx, name, metav1.DeleteOptions{})
	case err == nil:
		object.Data = map[string]string{"number": fmt.Sprint(number)}
		_, err = objects.Update(c.Ctx, object, metav1.UpdateOptions{})
	}
	c.Must(err, "change an object")
}

// live returns the version of each object in the API server.
func (c *connection) live() map[string]string {
	c.T.Helper()
	list, err := c.Client.CoreV1().ConfigMaps(c.Namespace).List(c.Ctx, metav1.ListOptions{})
	c.Must(err, "list")
	versions := map[string]string{}
	for _, object := range list.Items {
		versions[object.Name] = object.ResourceVersion
	}
	return versions
}

// cached returns the version of each object in the cache.
func (c *connection) cached(cache listers.ConfigMapLister) map[string]string {
	c.T.Helper()
	list, err := cache.List(labels.Everything())
	c.Must(err, "list cache")
	versions := map[string]string{}
	for _, object := range list {
		versions[object.Name] = object.ResourceVersion
	}
	return versions
}
