package nodedeployment

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

func TestDeletedClaimIsForgotten(t *testing.T) {
	claim := &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "claim", UID: "uid",
		ResourceVersion: "7"}}
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	c, err := New(Config{
		Client: fake.NewClientset(), Claims: factory.Core().V1().PersistentVolumeClaims().Informer(),
		Classes: factory.Storage().V1().StorageClasses().Informer(), BaseDelay: time.Second, MaxDelay: time.Second,
		Reporter: controller.NewReporter(record.NewFakeRecorder(1)),
	})
	if err != nil {
		t.Fatal(err)
	}
	c.versions.RecordWrite(claim)
	c.delay(controller.Key(claim))
	c.deleted(claim)
	if len(c.attempts) != 0 {
		t.Errorf("attempts for a deleted claim: %v", c.attempts)
	}
	older := claim.DeepCopy()
	older.ResourceVersion = "6"
	if !c.versions.IsFresh(older) {
		t.Error("the version of a deleted claim is remembered")
	}
	c.delay(controller.Key(claim)) // an attempt that read the claim before its deletion
	if err := c.Reconcile(t.Context(), controller.Key(claim)); err != nil {
		t.Fatal(err)
	}
	if len(c.attempts) != 0 {
		t.Errorf("attempts for a claim deleted during an attempt: %v", c.attempts)
	}
}
