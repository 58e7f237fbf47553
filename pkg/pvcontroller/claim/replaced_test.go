package claim

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/binding"
)

// other is a second claim that volume v satisfies.
func other(claim *v1.PersistentVolumeClaim) { claim.Name, claim.UID = "other", "other" }

// A Bound volume was replaced without its claimRef, as a tool does that knows the manifest only. The first claim has its
// data on it.
func TestReplacedVolumeIsBoundToItsClaimAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		volume *v1.PersistentVolume
		second *v1.PersistentVolumeClaim
		order  []string
	}{
		"second claim first": {free("v", "1", phaseOfVolume(v1.VolumeBound)), pendingClaim(other), []string{"ns/other", "ns/claim", "ns/other"}},
		"second claim last":  {free("v", "1", phaseOfVolume(v1.VolumeBound)), pendingClaim(other), []string{"ns/claim", "ns/other"}},
		"second claim names the volume": {free("v", "1", phaseOfVolume(v1.VolumeBound)), pendingClaim(other, naming("v")),
			[]string{"ns/other", "ns/claim", "ns/other"}},
		"Available already":              {free("v", "1"), pendingClaim(other), []string{"ns/other", "ns/claim", "ns/other"}},
		"Available, second claim names":  {free("v", "1"), pendingClaim(other, naming("v")), []string{"ns/other", "ns/claim", "ns/other"}},
		"volume no longer fits":          {free("v", "1", inClass("other")), pendingClaim(other, ofClass("other")), []string{"ns/other", "ns/claim", "ns/other"}},
		"second claim wrote annotations": {free("v", "1"), pendingClaim(other, naming("v"), boundOnce, statusPending), []string{"ns/other", "ns/claim", "ns/other"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newController(t, tc.volume, pendingClaim(naming("v"), boundOnce), tc.second)
			for _, key := range tc.order {
				if err := c.Reconcile(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			volume, err := c.Client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
			if err != nil || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != "claim" {
				t.Errorf("claimRef %v, %v, want the first claim; requests %q", volume.Spec.ClaimRef, err, requests(c))
			}
		})
	}
}

func statusPending(c *v1.PersistentVolumeClaim) {
	c.Status = v1.PersistentVolumeClaimStatus{Phase: v1.ClaimPending}
}

func TestVolumeWithOwnerIsNotOffered(t *testing.T) {
	owner := pendingClaim(naming("v"), boundOnce)
	c, _ := newController(t, free("v", "1"), owner)
	c.volumeReplayed(c.Caches.Volume("v"))
	if volumes, _ := c.index.Len(); volumes != 0 {
		t.Errorf("%d free volumes, want none", volumes)
	}
	if err := c.Caches.Claims.GetStore().Delete(owner); err != nil {
		t.Fatal(err)
	}
	c.claimGone(owner)
	if volumes, _ := c.index.Len(); volumes != 1 {
		t.Errorf("%d free volumes once the claim is gone, want the volume", volumes)
	}
}

// The index has the volume from before its claim was seen.
func TestIndexedVolumeWithOwnerIsNotTaken(t *testing.T) {
	c, _ := newController(t, free("v", "1"), pendingClaim(naming("v"), boundOnce))
	c.index.Update(free("v", "1"))
	if volume, err := c.takeVolume(pendingClaim(other)); err != nil || volume != nil {
		t.Errorf("taken: %v, %v", volume, err)
	}
}

func TestEventNamesOwnerOfVolume(t *testing.T) {
	for namespace, want := range map[string]string{"ns": "belongs to claim claim",
		"elsewhere": "belongs to a claim in another namespace"} {
		owner := pendingClaim(naming("v"), boundOnce, func(c *v1.PersistentVolumeClaim) { c.Namespace = namespace })
		second := pendingClaim(other, naming("v"))
		c, _ := newController(t, free("v", "1"), owner, second)
		o := c.Observer.observe(second, c.Caches.Volume("v"), false)
		if got := binding.DecideClaim(o.state); got.Reason != binding.VolumeBoundToOther {
			t.Errorf("decision %v", got)
		}
		if event, _ := c.eventFor(o, binding.VolumeBoundToOther); !strings.HasSuffix(event.Message, want) {
			t.Errorf("event %q, want %q", event.Message, want)
		}
	}
}

// The claim that the volume waits for is enqueued when the volume changes.
func TestReplacedVolumeEnqueuesItsClaim(t *testing.T) {
	c, _ := newController(t, free("v", "1"), pendingClaim(naming("v"), boundOnce))
	queue := c.Loops()[0].Step()
	c.volumeChanged(free("v", "0", referringTo("claim", "claim")), c.Caches.Volume("v"))
	if due, _ := queue.Keys(); !slices.Equal(due, []string{"ns/claim"}) {
		t.Errorf("enqueued %q, want the claim", due)
	}
}
