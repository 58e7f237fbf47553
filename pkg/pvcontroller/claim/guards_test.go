package claim

import (
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func newVersion(c *v1.PersistentVolumeClaim) { c.ResourceVersion = "2" }

func phaseOfVolume(phase v1.PersistentVolumePhase) func(*v1.PersistentVolume) {
	return func(v *v1.PersistentVolume) { v.Status.Phase = phase }
}

// TestWriteOfChangedClaimIsRefused: the claim changes between the decision and the write.
func TestWriteOfChangedClaimIsRefused(t *testing.T) {
	bound := free("v", "1", referringTo("claim", "claim"), phaseOfVolume(v1.VolumeBound))
	standard := class("example.com/driver", immediate)
	standard.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	for name, tc := range map[string]struct {
		claim *v1.PersistentVolumeClaim
		other runtime.Object
	}{
		"bind claim":           {pendingClaim(), bound},
		"complete binding":     {pendingClaim(naming("v")), bound},
		"set status Bound":     {pendingClaim(naming("v"), annotated(storage.AnnBindCompleted, "yes")), bound},
		"set status Pending":   {pendingClaim(func(c *v1.PersistentVolumeClaim) { c.Status.Phase = "" }), nil},
		"set status Lost":      {pendingClaim(naming("v"), boundOnce), nil},
		"assign default class": {pendingClaim(), standard},
		"request volume":       {pendingClaim(ofClass("class")), standard},
		"set migrated-to":      {pendingClaim(annotated(storage.AnnStorageProvisioner, "kubernetes.io/gce-pd")), nil},
		"remove migrated-to":   {pendingClaim(annotated(storage.AnnStorageProvisioner, "example.com/driver", storage.AnnMigratedTo, "pd.csi.storage.gke.io")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{tc.claim}
			if tc.other != nil {
				objects = append(objects, tc.other)
			}
			c, _ := newController(t, objects...)
			live := tc.claim.DeepCopy()
			newVersion(live)
			if _, err := c.Client.CoreV1().PersistentVolumeClaims("ns").
				Update(t.Context(), live, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if err := c.Reconcile(t.Context(), "ns/claim"); err == nil {
				t.Errorf("no write was refused: %v", requests(c))
			}
		})
	}
}

func requests(c *Controller) (sent []string) {
	for _, action := range c.Client.(*fake.Clientset).Actions() {
		sent = append(sent, action.GetVerb()+" "+action.GetResource().Resource)
	}
	return sent
}

func TestClaimOlderThanOwnWriteIsRequeued(t *testing.T) {
	c, _ := newController(t, pendingClaim(), free("v", "1"))
	c.Versions.RecordWrite(pendingClaim(newVersion))
	if err := c.Reconcile(t.Context(), "ns/claim"); !errors.Is(err, controller.ErrStaleCache) || len(requests(c)) > 0 {
		t.Errorf("Reconcile() = %v, requests %q, want %v", err, requests(c), controller.ErrStaleCache)
	}
}

func TestVolumeOlderThanOwnWriteIsAwaited(t *testing.T) {
	c, _ := newController(t, pendingClaim(), free("v", "1", referringTo("claim", "claim")))
	c.Versions.RecordWrite(free("v", "2"))
	if err := c.Reconcile(t.Context(), "ns/claim"); !errors.Is(err, controller.ErrStaleCache) || len(requests(c)) > 0 {
		t.Errorf("Reconcile() = %v, requests %q, want %v", err, requests(c), controller.ErrStaleCache)
	}
}

func TestClaimThatIsGoneNoLongerWaits(t *testing.T) {
	c, _ := newController(t, pendingClaim())
	reconcile(t, c)
	if err := c.Caches.Claims.GetStore().Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	if err := c.Reconcile(t.Context(), "ns/claim"); err != nil {
		t.Errorf("Reconcile() = %v", err)
	}
	if _, waiting := c.index.Len(); waiting > 0 {
		t.Errorf("%d claims wait for a volume", waiting)
	}
}

// The cache shows another claim on the volume. That is older than our own write, which may have
// cleared the claimRef: the volume is awaited, and the claim does not take a worse one.
func TestReservedVolumeOlderThanOwnWriteIsAwaited(t *testing.T) {
	c, _ := newController(t, pendingClaim(), free("v", "1"))
	if err := c.Caches.Volumes.GetStore().Update(free("v", "2", referringTo("other", "other"))); err != nil {
		t.Fatal(err)
	}
	c.Versions.RecordWrite(free("v", "3"))
	if err := c.Reconcile(t.Context(), "ns/claim"); !errors.Is(err, controller.ErrStaleCache) {
		t.Errorf("Reconcile() = %v, want %v", err, controller.ErrStaleCache)
	}
}

func TestVolumeOlderThanOwnWriteIsNotFree(t *testing.T) {
	c := emptyController(t)
	if err := c.Caches.Volumes.GetStore().Add(free("v", "1")); err != nil {
		t.Fatal(err)
	}
	c.Versions.RecordWrite(free("v", "2", referringTo("other", "other")))
	c.volumeChanged(nil, free("v", "1"))
	if volumes, _ := c.index.Len(); volumes > 0 {
		t.Error("the index has a volume that this program has bound")
	}
}
