package claim

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// scrubbing returns the key of the recycler pod of a volume, "" if there is none.
type scrubbing func(volume *v1.PersistentVolume) string

func (s scrubbing) ScrubbingPod(volume *v1.PersistentVolume) string { return s(volume) }

func (s scrubbing) IsScrubbed(volume *v1.PersistentVolume) bool { return s(volume) != "" }

// scrub has a recycler pod scrub the volume until the returned function is called.
func scrub(c *Controller, name string) (end func()) {
	pod := "default/recycler-for-" + name
	c.Observer.Scrubbing = scrubbing(func(volume *v1.PersistentVolume) string {
		if volume.Name == name {
			return pod
		}
		return ""
	})
	return func() {
		pod = ""
		c.RecyclerEnded(name)
	}
}

func prebound(v *v1.PersistentVolume) {
	v.Spec.ClaimRef = &v1.ObjectReference{Namespace: "ns", Name: "claim"}
}

// The recycler pod would remove what the pods of the claim write.
func TestClaimAwaitsRecyclerPodOfItsVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		claim  *v1.PersistentVolumeClaim
		volume *v1.PersistentVolume
	}{
		"volume named by the claim": {pendingClaim(naming("v")), free("v", "1")},
		"volume reserved by name":   {pendingClaim(), free("v", "1", prebound)},
		"volume reserved by UID":    {pendingClaim(), free("v", "1", referringTo("claim", "claim"))},
		"volume is Bound":           {pendingClaim(), free("v", "1", referringTo("claim", "claim"), phaseOfVolume(v1.VolumeBound))},
		"claim was restored":        {pendingClaim(naming("v"), boundOnce), free("v", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			c, events := newController(t, tc.claim, tc.volume)
			end := scrub(c, "v")
			reconcile(t, c)
			if sent := requests(c); slices.ContainsFunc(sent, func(request string) bool { return request[:5] == "patch" }) {
				t.Errorf("requests %q", sent)
			}
			if want := []string{"*v1.PersistentVolumeClaim claim: Normal FailedBinding"}; !slices.Equal(events.sent(), want) {
				t.Errorf("events %q, want %q", events.sent(), want)
			}
			end()
			if claim := reconcile(t, c); claim.Spec.VolumeName != "v" {
				t.Errorf("the claim names volume %q once the pod has ended", claim.Spec.VolumeName)
			}
		})
	}
}

func TestBoundClaimDoesNotAwaitRecyclerPod(t *testing.T) {
	c, events := newController(t, pendingClaim(naming("v"), boundOnce),
		free("v", "1", referringTo("claim", "claim"), phaseOfVolume(v1.VolumeReleased)))
	scrub(c, "v")
	reconcile(t, c)
	if len(requests(c)) == 0 || len(events.sent()) > 0 {
		t.Errorf("requests %q, events %q", requests(c), events.sent())
	}
}

func TestScrubbedVolumeIsNotTaken(t *testing.T) {
	larger := func(v *v1.PersistentVolume) {
		v.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("2Gi")}
	}
	for name, tc := range map[string]struct {
		other []*v1.PersistentVolume
		want  string
	}{
		"another volume fits": {[]*v1.PersistentVolume{free("w", "2", larger)}, "w"},
		"no other volume":     {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := emptyController(t)
			for _, volume := range append(tc.other, free("v", "1")) {
				c.index.Update(volume)
				if err := c.Caches.Volumes.GetStore().Add(volume); err != nil {
					t.Fatal(err)
				}
			}
			end := scrub(c, "v")
			volume, err := c.takeVolume(newClaim())
			if err != nil || (volume == nil) != (tc.want == "") || volume != nil && volume.Name != tc.want {
				t.Fatalf("took %v, %v, want %q", volume, err, tc.want)
			}
			end()
			if volumes, waiting := c.index.Len(); volumes != 1+len(tc.other) || waiting != 0 {
				t.Errorf("%d free volumes and %d waiting claims once the pod has ended", volumes, waiting)
			}
		})
	}
}

// The recycler pod ends while the claim looks at the volume.
func TestVolumeIsFreeThoughRecyclerPodEndsEarly(t *testing.T) {
	c := emptyController(t)
	c.index.Update(free("v", "1"))
	if err := c.Caches.Volumes.GetStore().Add(free("v", "1")); err != nil {
		t.Fatal(err)
	}
	ended := false
	c.Observer.Scrubbing = scrubbing(func(*v1.PersistentVolume) string {
		if ended {
			return ""
		}
		ended = true
		c.RecyclerEnded("v")
		return "default/recycler-for-v"
	})
	if volume, err := c.takeVolume(newClaim()); err != nil || volume == nil || volume.Name != "v" {
		t.Errorf("took %v, %v", volume, err)
	}
}

func TestRecyclerPodOfMissingVolumeEnds(t *testing.T) {
	c := emptyController(t)
	c.RecyclerEnded("v")
	if volumes, _ := c.index.Len(); volumes != 0 {
		t.Errorf("%d free volumes", volumes)
	}
}
