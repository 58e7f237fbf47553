package claim

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// created sets the creation time of the claim, relative to the start of the controller.
func created(after time.Duration) func(*v1.PersistentVolumeClaim) {
	return func(c *v1.PersistentVolumeClaim) { c.CreationTimestamp = metav1.NewTime(time.Now().Add(after)) }
}

// Each case does something one second after the claim was reconciled.
func TestLongWaitForProvisionerIsReported(t *testing.T) {
	const waits = "*v1.PersistentVolumeClaim claim: Normal ExternalProvisioning"
	for name, tc := range map[string]struct {
		created   time.Duration
		meanwhile func(*testing.T, *Controller)
		early     []string // within the first second
		want      []string
	}{
		"new claim":                      {0, func(*testing.T, *Controller) {}, nil, []string{waits}},
		"claim that existed before":      {-time.Second, func(*testing.T, *Controller) {}, []string{waits}, []string{waits}},
		"new claim, reconciled again":    {0, func(t *testing.T, c *Controller) { reconcile(t, c) }, nil, []string{waits}},
		"new claim that is bound soon":   {0, bindMeanwhile, nil, nil},
		"new claim that is deleted soon": {0, func(_ *testing.T, c *Controller) { c.claimGone(c.Caches.Claim("ns/claim")) }, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				objects := []runtime.Object{pendingClaim(ofClass("class"), created(tc.created)),
					class("example.com/driver", immediate)}
				c, events := newController(t, objects...)
				defer shutDown(c)
				reconcile(t, c)
				<-time.After(time.Second)
				early := events.sent()
				tc.meanwhile(t, c)
				<-time.After(time.Minute)
				synctest.Wait()
				if !slices.Equal(early, tc.early) || !slices.Equal(events.sent(), tc.want) {
					t.Errorf("events %q after a second, %q in the end, want %q, %q", early, events.sent(), tc.early, tc.want)
				}
			})
		})
	}
}

// The provisioner is busy, not missing: only a wait of half a minute is reported.
func TestWaitBehindServedClaimsIsReportedLate(t *testing.T) {
	for name, tc := range map[string]struct {
		served time.Duration // how long another claim is bound each second
		want   time.Duration
	}{
		"none":                   {0, 2 * time.Second},
		"for ten seconds":        {10 * time.Second, 12 * time.Second},
		"for more than a minute": {time.Minute, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, events := newController(t, pendingClaim(ofClass("class"), created(0)), class("example.com/driver", immediate))
				defer shutDown(c)
				reconcile(t, c)
				start, reported := time.Now(), time.Duration(0)
				for time.Since(start) < 2*time.Minute {
					if time.Since(start) < tc.served {
						c.served.add("example.com/driver")
					}
					<-time.After(time.Second)
					if synctest.Wait(); reported == 0 && len(events.sent()) > 0 {
						reported = time.Since(start)
					}
				}
				if reported != tc.want || len(events.sent()) != 1 {
					t.Errorf("reported after %s, events %q, want after %s", reported, events.sent(), tc.want)
				}
			})
		})
	}
}

// A claim that the provisioner served counts, another one does not.
func TestBoundClaimOfProvisionerCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		claim *v1.PersistentVolumeClaim
		want  bool
	}{
		"requested":     {pendingClaim(ofClass("class"), annotated(storage.AnnStorageProvisioner, "example.com/driver")), true},
		"not requested": {pendingClaim(ofClass("class")), false},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newController(t, tc.claim, class("example.com/driver", immediate),
				free("v", "1", inClass("class"), referringTo("claim", "claim")))
			reconcile(t, c)
			if got := c.served.lately("example.com/driver"); got != tc.want || c.served.lately("example.com/other") {
				t.Errorf("served lately: %v, want %v", got, tc.want)
			}
		})
	}
}

// shutDown stops the goroutine of the workqueue.
func shutDown(c *Controller) {
	ended, end := context.WithCancel(context.Background())
	end()
	c.Run(ended, 1)
}

// bindMeanwhile has the provisioner create the volume of the claim.
func bindMeanwhile(t *testing.T, c *Controller) {
	t.Helper()
	volume := free("v", "1", inClass("class"), referringTo("claim", "claim"))
	if _, err := c.Client.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Caches.Volumes.GetStore().Add(volume); err != nil {
		t.Fatal(err)
	}
	if bound := reconcile(t, c); bound.Status.Phase != v1.ClaimBound {
		t.Errorf("the claim is %s", bound.Status.Phase)
	}
}
