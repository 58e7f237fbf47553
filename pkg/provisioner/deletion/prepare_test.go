package deletion

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provision"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
)

// keyed is a driver that records the secrets of its deletions.
type keyed struct {
	shredder
	secrets []string
}

func (k *keyed) DeleteVolume(ctx context.Context, handle string, secrets map[string]string) error {
	k.secrets = append(k.secrets, secrets["user"])
	return k.shredder.DeleteVolume(ctx, handle, secrets)
}

// releasedWith returns a released volume that names the secret for its deletion.
func releasedWith(secret string) *v1.PersistentVolume {
	volume := released("pv")
	volume.Annotations[provision.DeletionSecretName], volume.Annotations[provision.DeletionSecretNamespace] = secret, "ns"
	return volume
}

// reconcileWithSecrets reconciles the volume, which the cache shows, with a CSI driver.
func reconcileWithSecrets(t *testing.T, client *fake.Clientset, driver csibackend.DeletionDriver,
	volume *v1.PersistentVolume) (events []string, err error) {
	t.Helper()
	recorder := record.NewFakeRecorder(10)
	c, err := New(Config{
		Client: client, Volumes: informers.NewSharedInformerFactory(client, 0).Core().V1().PersistentVolumes().Informer(),
		Honor:    true,
		Deleter:  &csibackend.Deleter{Client: client, Driver: driver, Translator: &shredder{}},
		Reporter: controller.NewReporter(recorder), Metrics: metrics.New("prepare"), Locks: &controller.KeyLocks{},
		Backoff: controller.Backoff{Initial: time.Second, Max: time.Second},
	})
	if err == nil {
		err = c.Volumes.GetStore().Add(volume)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = c.Reconcile(t.Context(), volume.Name)
	for len(recorder.Events) > 0 {
		events = append(events, <-recorder.Events)
	}
	return events, err
}

func secretOf(user string) *v1.Secret {
	return &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: user},
		Data: map[string][]byte{"user": []byte(user)}}
}

// TestRetainCountsWhileSecretIsRead sets the policy Retain while the secret or its namespace is
// read: with a limited rate of requests that takes long.
func TestRetainCountsWhileSecretIsRead(t *testing.T) {
	for name, tc := range map[string]struct {
		during  string
		objects []runtime.Object
	}{
		"while the secret is read":    {"secrets", []runtime.Object{secretOf("root")}},
		"while the namespace is read": {"namespaces", nil},
	} {
		t.Run(name, func(t *testing.T) {
			volume, driver := releasedWith("root"), &keyed{}
			client := fake.NewClientset(append(tc.objects, volume)...)
			reads := 0
			client.PrependReactor("get", tc.during, func(clienttesting.Action) (bool, runtime.Object, error) {
				reads++
				kept := volume.DeepCopy()
				kept.ResourceVersion, kept.Spec.PersistentVolumeReclaimPolicy = "2", v1.PersistentVolumeReclaimRetain
				return false, nil, client.Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumes"), kept, "")
			})
			if _, err := reconcileWithSecrets(t, client, driver, volume); err != nil || reads == 0 || len(driver.deleted) > 0 {
				t.Errorf("deleted %v after %d reads, error %v", driver.deleted, reads, err)
			}
		})
	}
}

func TestSecretIsThatOfTheLiveVolume(t *testing.T) {
	volume, driver := releasedWith("old"), &keyed{}
	live := releasedWith("new")
	live.ResourceVersion = "2"
	client := fake.NewClientset(live, secretOf("old"), secretOf("new"))
	if _, err := reconcileWithSecrets(t, client, driver, volume); err != nil || len(driver.secrets) != 1 ||
		driver.secrets[0] != "new" {
		t.Errorf("DeleteVolume with secrets %v, want the new one, once; error %v", driver.secrets, err)
	}
}

// The claim exists, so nothing is deleted: a missing secret fails nothing.
func TestMissingSecretOfClaimedVolumeIsNoFailure(t *testing.T) {
	volume, driver := releasedWith("missing"), &keyed{}
	claim := &v1.PersistentVolumeClaim{}
	claim.Namespace, claim.Name, claim.UID, claim.Spec.VolumeName = volume.Spec.ClaimRef.Namespace,
		volume.Spec.ClaimRef.Name, volume.Spec.ClaimRef.UID, volume.Name
	client := fake.NewClientset(volume, claim, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
	if events, err := reconcileWithSecrets(t, client, driver, volume); err != nil || len(events) > 0 ||
		len(driver.deleted) > 0 {
		t.Errorf("events %v, deleted %v, error %v", events, driver.deleted, err)
	}
	if err := client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), claim.Namespace,
		claim.Name); err != nil {
		t.Fatal(err)
	}
	if events, err := reconcileWithSecrets(t, client, driver, volume); err == nil || len(events) != 1 ||
		len(driver.deleted) > 0 {
		t.Errorf("without the claim: events %v, deleted %v, error %v", events, driver.deleted, err)
	}
}

// An update of the program, or the end of its leadership, interrupts calls: the driver has not failed.
func TestInterruptedCallIsNoFailureOfTheDriver(t *testing.T) {
	volume := directory("pv")
	c := guarded(t, fake.NewClientset(volume.DeepCopy()), &directories{}, volume)
	o := c.observe(volume)
	o.read = time.Now()
	ctx, stop := context.WithCancel(t.Context())
	o.prepared = func(ctx context.Context) error {
		stop()
		return ctx.Err()
	}
	if _, err := c.deleteVolume(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	failures := c.Metrics.PersistentVolumeDeleteFailedTotal.WithLabelValues(volume.Spec.StorageClassName)
	if failed := testutil.ToFloat64(failures); failed != 0 {
		t.Errorf("%v failures are counted", failed)
	}
}
