package nodeterminator

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
)

// A claim of T 1m is deleted while nodes get the label and a webhook takes 10 s for each patch of a Node.
func TestWebhookOfOtherNodesDelaysNoClaim(t *testing.T) {
	inDisrupted(t, "1m", func(w *disrupted) {
		w.MaxDisrupted = 0
		w.Client = slowNodes{w.client, 10 * time.Second}
		go w.work(w.ctx, 50)
		for i := range 200 {
			n := labeledNode()
			n.Name = fmt.Sprint("other-", i)
			n.UID = types.UID(n.Name)
			n.Spec.ProviderID = "mock://" + n.Name
			w.cached(n)
			w.Notify(n.Name)
		}
		<-time.After(time.Second)
		began := time.Now()
		deleted := time.Hour
		w.before("delete", "nodes", func(clienttesting.Action) { deleted = time.Since(began) })
		at := metav1.NewTime(time.Now())
		w.change("a", func(one *unstructured.Unstructured) { one.SetDeletionTimestamp(&at) })
		one := w.Claims.named("a").DeepCopy()
		if err := w.claims.Tracker().Update(claimResource, one, ""); err != nil {
			t.Fatal(err)
		}
		w.Notify("a")
		<-time.After(5 * time.Minute)
		if deleted > time.Second {
			t.Errorf("the Node was deleted after %v", deleted)
		}
	})
}
