package claim

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

func deleted(c *v1.PersistentVolumeClaim) {
	now := metav1.Now()
	c.DeletionTimestamp = &now
}

func TestNoFinalizerIsAddedToClaims(t *testing.T) {
	for _, provisioner := range []string{intree.HostPathName, "example.com/driver", "kubernetes.io/gce-pd"} {
		t.Run(provisioner, func(t *testing.T) {
			created := free("created", "1", referringTo("other", "other"))
			created.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: provisioner,
				"exeunt.io/holds-claims": "other"}
			c, _ := newController(t, pendingClaim(ofClass("class")), class(provisioner, storagev1.VolumeBindingImmediate),
				created)
			c.volumeChanged(nil, created)
			if claim := reconcile(t, c); len(claim.Finalizers) > 0 || claim.Annotations[storage.AnnStorageProvisioner] == "" {
				t.Errorf("finalizers %v, annotations %v", claim.Finalizers, claim.Annotations)
			}
		})
	}
}

func TestRefusedRequestIsReported(t *testing.T) {
	resource := v1.Resource("persistentvolumeclaims")
	for name, tc := range map[string]struct {
		refusal error
		version string // what the version of the claim has become meanwhile
		events  int
	}{
		"refusal":                   {apierrors.NewBadRequest("by policy"), "", 1},
		"conflict":                  {apierrors.NewConflict(resource, "claim", errors.New("changed meanwhile")), "9", 0},
		"webhook denies with a 409": {apierrors.NewConflict(resource, "claim", errors.New("denied")), "", 1},
		"webhook denies with a 404": {apierrors.NewNotFound(resource, "claim"), "", 1},
		"webhook denies with a 422": {apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "patch", resource, "claim", "denied", 0, false), "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, events := newController(t, pendingClaim(ofClass("class")),
				class("csi.example.com", storagev1.VolumeBindingImmediate))
			client := c.Client.(*fake.Clientset)
			client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, tc.refusal
			})
			client.PrependReactor("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				live := pendingClaim(ofClass("class"))
				live.ResourceVersion += tc.version
				return true, live, nil
			})
			for range 2 {
				if err := c.Reconcile(t.Context(), "ns/claim"); err == nil {
					t.Fatal("the refused write is no error")
				}
			}
			sent := events.sent()
			if len(sent) != tc.events || tc.events > 0 && !strings.HasSuffix(sent[0], "Warning ProvisioningFailed") {
				t.Errorf("events %q", sent)
			}
		})
	}
}

func TestReconcileEndsThoughWebhookRevertsWrites(t *testing.T) {
	claim := pendingClaim(ofClass("class"))
	c, _ := newController(t, claim, class("csi.example.com", storagev1.VolumeBindingImmediate))
	patches := 0
	c.Client.(*fake.Clientset).PrependReactor("patch", "persistentvolumeclaims",
		func(clienttesting.Action) (bool, runtime.Object, error) {
			patches++
			return patches < 1000, claim.DeepCopy(), nil
		})
	if err := c.Reconcile(t.Context(), "ns/claim"); !errors.Is(err, controller.ErrTooManySteps) ||
		patches > controller.MaxSteps {
		t.Errorf("%d patches in one reconcile, error %v", patches, err)
	}
}

// A person reserved a provisioned volume for the claim.
func TestExistingPluginVolumeIsBoundWithoutProvisioning(t *testing.T) {
	created := free("pvc-former", "1", inClass("class"))
	created.Annotations = map[string]string{storage.AnnDynamicallyProvisioned: intree.HostPathName}
	c, _ := newController(t, pendingClaim(ofClass("class")), class(intree.HostPathName, storagev1.VolumeBindingImmediate),
		created)
	if claim := reconcile(t, c); claim.Status.Phase != v1.ClaimBound || claim.Spec.VolumeName != "pvc-former" {
		t.Errorf("the claim is %s, bound to %q", claim.Status.Phase, claim.Spec.VolumeName)
	}
}

func TestClaimIsHandedToInTreeProvisioner(t *testing.T) {
	for provisioner, want := range map[string]handedOver{intree.HostPathName: {"ns/claim"}, "example.com/driver": nil} {
		t.Run(provisioner, func(t *testing.T) {
			c, _ := newController(t, pendingClaim(ofClass("class")), class(provisioner, storagev1.VolumeBindingImmediate))
			claim := reconcile(t, c)
			if got := *c.InTree.(*handedOver); !slices.Equal(got, want) {
				t.Errorf("handed over %v, want %v", got, want)
			}
			if got := c.Observer.AwaitsPlugin(claim); got != (want != nil) {
				t.Errorf("AwaitsPlugin = %v", got)
			}
		})
	}
}
