package claim

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/exeunt-io/exeunt/pkg/binding"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// A webhook gives the claim a class during a write, which returns the claim with its class: the
// volume that was found for the claim without class fits no more.
func TestVolumeThatFitsNoMoreIsLeft(t *testing.T) {
	plugin := annotated(storage.AnnStorageProvisioner, "kubernetes.io/gce-pd")
	c, _ := newController(t, pendingClaim(plugin), free("v", "1"))
	client := c.Client.(*fake.Clientset)
	client.PrependReactor("patch", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		changed := pendingClaim(plugin, annotated(storage.AnnMigratedTo, "pd.csi.storage.gke.io"), ofClass("class"))
		return true, changed, client.Tracker().Update(v1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), changed,
			"ns")
	})
	now := reconcile(t, c)
	if volume := c.Caches.Volume("v"); volume.Spec.ClaimRef != nil || now.Spec.VolumeName != "" ||
		storage.ClaimClass(now) != "class" {
		t.Errorf("a claim of class %q is bound to volume %q of no class", storage.ClaimClass(now), volume.Name)
	}
}

func TestClaimRefIsRestoredThoughVolumeDoesNotFit(t *testing.T) {
	c, _ := newController(t, pendingClaim(naming("v"), boundOnce), free("v", "1", inClass("other")))
	reconcile(t, c)
	if ref := c.Caches.Volume("v").Spec.ClaimRef; ref == nil || ref.UID != "claim" {
		t.Errorf("the volume refers to %v, want the claim that was bound to it", ref)
	}
}

func TestClaimWithoutVolumeIsOfferedTheRest(t *testing.T) {
	local := class("example.com/driver", storagev1.VolumeBindingWaitForFirstConsumer)
	for name, tc := range map[string]struct {
		claim *v1.PersistentVolumeClaim
		class string
	}{
		"names another volume":             {pendingClaim(naming("gone")), ""},
		"was bound once, names no volume":  {pendingClaim(boundOnce), ""},
		"is being deleted":                 {pendingClaim(deleted), ""},
		"waits for its first consumer":     {pendingClaim(ofClass("class")), "class"},
		"waits for its volume on the node": {pendingClaim(ofClass("class"), annotated(storage.AnnSelectedNode, "node")), "class"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newController(t, tc.claim, local, free("v", "1", inClass(tc.class)))
			reconcile(t, c)
			other := newClaim()
			other.Name, other.UID = "other", "other"
			ofClass(tc.class)(other)
			if volume, err := c.takeVolume(other); err != nil || volume == nil || volume.Spec.ClaimRef != nil {
				t.Errorf("another claim takes %v, %v, want the free volume", volume, err)
			}
		})
	}
}

func TestDefaultClassIsAssignedToClaimsWithoutClass(t *testing.T) {
	standard := class("example.com/driver", immediate)
	standard.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	for name, tc := range map[string]struct {
		claim *v1.PersistentVolumeClaim
		want  string
	}{
		"no class":      {pendingClaim(), "class"},
		"empty class":   {pendingClaim(ofClass("")), ""},
		"another class": {pendingClaim(ofClass("other")), "other"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newController(t, tc.claim, standard)
			if got := storage.ClaimClass(reconcile(t, c)); got != tc.want {
				t.Errorf("the claim has class %q, want %q", got, tc.want)
			}
		})
	}
}

func TestClassOfClaimIsObserved(t *testing.T) {
	for name, tc := range map[string]struct {
		claim     *v1.PersistentVolumeClaim
		want      binding.Class
		requested bool
	}{
		"no class":      {pendingClaim(), binding.NoClass, false},
		"missing class": {pendingClaim(ofClass("other")), binding.NoSuchClass, false},
		"new claim":     {pendingClaim(ofClass("class")), binding.Provisionable, false},
		"requested":     {pendingClaim(ofClass("class"), annotated(storage.AnnStorageProvisioner, "example.com/driver")), binding.Provisionable, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newController(t, tc.claim, class("example.com/driver", immediate))
			if state := c.Observer.observe(tc.claim, nil, false).state; state.Class != tc.want ||
				state.Requested != tc.requested {
				t.Errorf("class %v, requested %v, want %v, %v", state.Class, state.Requested, tc.want, tc.requested)
			}
		})
	}
}

// Looking for the default class takes a list of all classes.
func TestDefaultClassIsOnlyLookedForWithoutVolume(t *testing.T) {
	v := free("v", "1", referringTo("claim", "claim"), phaseOfVolume(v1.VolumeBound))
	standard := class("example.com/driver", immediate)
	standard.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	for name, tc := range map[string]struct {
		claim  *v1.PersistentVolumeClaim
		volume *v1.PersistentVolume
		want   binding.ClaimDecision
		class  string
	}{
		"no volume":           {pendingClaim(), nil, binding.ClaimDecision{Action: binding.AssignClass, Reason: binding.DefaultClass}, "class"},
		"free volume":         {pendingClaim(), free("v", "1"), binding.ClaimDecision{Action: binding.BindFreeVolume, Reason: binding.Binding}, ""},
		"volume of the claim": {pendingClaim(), v, binding.ClaimDecision{Action: binding.ConfirmVolume, Reason: binding.Binding}, ""},
		"named, does not fit": {pendingClaim(naming("v")), free("v", "1", inClass("other")),
			binding.ClaimDecision{Action: binding.Wait, Reason: binding.VolumeMismatched}, "class"},
		"bound":                {pendingClaim(naming("v"), boundOnce), v, binding.ClaimDecision{Action: binding.Wait, Reason: binding.IsBound}, ""},
		"bound, volume gone":   {pendingClaim(naming("v"), boundOnce), nil, binding.ClaimDecision{Action: binding.ConfirmVolume, Reason: binding.VolumeLost}, ""},
		"bound, names nothing": {pendingClaim(boundOnce), nil, binding.ClaimDecision{Action: binding.SetStatusLost, Reason: binding.ReferenceLost}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newController(t, standard)
			o := c.Observer.observe(tc.claim, tc.volume, false)
			if got := binding.DecideClaim(o.state); got != tc.want || o.defaultClass != tc.class {
				t.Errorf("decision %v, default class %q, want %v, %q", got, o.defaultClass, tc.want, tc.class)
			}
		})
	}
}
