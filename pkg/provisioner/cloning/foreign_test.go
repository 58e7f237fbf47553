package cloning_test

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	kit "github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/cloning"
	"github.com/exeunt-io/exeunt/pkg/provisioner/provisioning"
)

// A clone of another provisioner leaves the cache when it is bound. Its source, which is being
// deleted, loses the finalizer then.
func TestSourceOfForeignCloneLosesFinalizer(t *testing.T) {
	for name, deleted := range map[string]bool{"bound": false, "deleted while pending": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, clone := claim("source", protected, deleting), claim("clone", waitsForCloneOf("source"))
				source.UID, clone.UID = "source", "clone"
				now := metav1.Now()
				source.DeletionTimestamp = &now
				client := fake.NewClientset(source, clone)
				claims, _ := provisioning.NewClaims(client, provisioning.Names{Driver: "ours.example.com"})
				c, err := cloning.New(client, claims, kit.NewReporter(record.NewFakeRecorder(10)))
				if err != nil {
					t.Fatal(err)
				}
				go claims.RunWithContext(t.Context())
				cache.WaitForCacheSync(t.Context().Done(), claims.HasSynced)
				if err := c.Watch(t.Context()); err != nil {
					t.Fatal(err)
				}
				go c.Run(t.Context(), 1)
				<-time.After(time.Minute)
				if !isProtected(t, client, "source") {
					t.Fatal("the source of a pending clone lost the finalizer")
				}
				if deleted {
					err = client.CoreV1().PersistentVolumeClaims("ns").Delete(t.Context(), "clone", metav1.DeleteOptions{})
				} else {
					bound := clone.DeepCopy()
					bound.ResourceVersion, bound.Status.Phase, bound.Spec.VolumeName = "2", v1.ClaimBound, "static"
					_, err = client.CoreV1().PersistentVolumeClaims("ns").Update(t.Context(), bound, metav1.UpdateOptions{})
				}
				if err != nil {
					t.Fatal(err)
				}
				<-time.After(24 * time.Hour)
				if len(claims.GetStore().List()) > 1 {
					t.Errorf("cached: %d claims", len(claims.GetStore().List()))
				}
				if isProtected(t, client, "source") {
					t.Error("the source still has the finalizer after a day")
				}
			})
		})
	}
}
