package nodedeployment

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

func TestNothingIsRememberedOfAClaimThatIsGone(t *testing.T) {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "uid", ResourceVersion: "7"}}
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	c, err := New(Config{
		Client: fake.NewClientset(), Claims: factory.Core().V1().PersistentVolumeClaims().Informer(),
		Classes: factory.Storage().V1().StorageClasses().Informer(), BaseDelay: time.Second, MaxDelay: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.versions.RecordWrite(claim)
	c.delay(controller.Key(claim))
	c.gone(claim)
	if len(c.tries) != 0 {
		t.Errorf("tries of a claim that is gone: %v", c.tries)
	}
	older := claim.DeepCopy()
	older.ResourceVersion = "6"
	if !c.versions.IsFresh(older) {
		t.Error("the version of a claim that is gone is remembered")
	}
	c.delay(controller.Key(claim)) // of a try that had read the claim before it went
	if err := c.Reconcile(t.Context(), controller.Key(claim)); err != nil {
		t.Fatal(err)
	}
	if len(c.tries) != 0 {
		t.Errorf("tries of a claim that went while it was tried: %v", c.tries)
	}
}
