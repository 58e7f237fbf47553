package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/finalizer"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/test/bench/plan"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// ceiling sends the fewest requests that could do it: the writes that no program can spare, and the
// reads before DeleteVolume, at most atOnce at the same time. Two idle watchers of volumes and claims
// stand for the programs.
type ceiling struct {
	loops, sidecar kubernetes.Interface
	namespace      string
	order          plan.Order
	latency        time.Duration
}

// newCeiling connects the ceiling, whose requests pass through limit, and opens the watches.
func newCeiling(ctx context.Context, cluster *Cluster, s *session,
	limit func(http.RoundTripper) http.RoundTripper) (*ceiling, error) {
	c := &ceiling{namespace: s.namespace, order: s.turn.Scenario.Order, latency: s.turn.Scenario.DriverLatency}
	for _, program := range []struct {
		client  *kubernetes.Interface
		user    sandbox.Identity
		address string
	}{
		{&c.loops, sandbox.PVControllerAccount, s.programs.LoopsAddress},
		{&c.sidecar, sandbox.ProvisionerAccount, s.programs.SidecarAddress},
	} {
		config := cluster.Client(program.user.Name(), program.address)
		config.Wrap(limit)
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("connect the ceiling: %w", err)
		}
		*program.client = client
		for _, resource := range []string{claimResource, volumeResource} {
			if err := watchIdly(ctx, s.view, client.CoreV1().RESTClient(), resource); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// watcher knows from which version of a resource a watch begins.
type watcher interface {
	version(resource string) string
	fail(err error)
}

// watchIdly receives all events of a resource from where the watcher has come until ctx ends,
// and does not decode them. The API server ends a watch that does not keep up; then another one
// begins, as in a program.
func watchIdly(ctx context.Context, w watcher, client rest.Interface, resource string) error {
	open := func() (io.ReadCloser, error) {
		return client.Get().Resource(resource).Param("watch", "true").Param("resourceVersion", w.version(resource)).
			Stream(ctx)
	}
	events, err := open()
	if err != nil {
		return fmt.Errorf("watch %s: %w", resource, err)
	}
	go func() {
		for err == nil {
			_, _ = io.Copy(io.Discard, events)
			_ = events.Close()
			events, err = open()
		}
		if ctx.Err() == nil {
			w.fail(fmt.Errorf("watch %s again: %w", resource, err))
		}
	}()
	return nil
}

// withoutLimit calls f for all numbers below size at the same time.
func withoutLimit(ctx context.Context, size int, f func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range size {
		group.Go(func() error { return f(ctx, i) })
	}
	return group.Wait()
}

// bind makes the five writes that bind a new claim to a new volume.
func (c *ceiling) bind(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	asked := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q,%q:%[2]q}}}`, storage.AnnStorageProvisioner, driverName,
		storage.AnnBetaStorageProvisioner)
	claim, err := c.patchClaim(ctx, claim.Name, asked)
	if err != nil {
		return err
	}
	sandbox.Pause(ctx, c.latency)
	volume, err := c.sidecar.CoreV1().PersistentVolumes().Create(ctx, newVolume(claim), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create volume: %w", err)
	}
	return c.complete(ctx, claim.Name, volume.Name)
}

// bindStatic makes the four writes that bind a new claim to a volume that names it.
func (c *ceiling) bindStatic(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
	reference := fmt.Sprintf(`{"spec":{"claimRef":{"apiVersion":"v1","kind":"PersistentVolumeClaim","uid":%q,"resourceVersion":%q}}}`, claim.UID, claim.ResourceVersion)
	if err := c.patchVolume(ctx, c.loops, claim.Spec.VolumeName, reference); err != nil {
		return err
	}
	return c.complete(ctx, claim.Name, claim.Spec.VolumeName)
}

// The status of a bound volume and of a bound claim.
const (
	volumeIsBound = `{"status":{"phase":"Bound"}}`
	claimIsBound  = `{"status":{"phase":"Bound","accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"}}}`
)

// complete makes the last three writes: phase of the volume, volume of the claim, phase of the
// claim.
func (c *ceiling) complete(ctx context.Context, claim, volume string) error {
	if err := c.patchVolume(ctx, c.loops, volume, volumeIsBound, "status"); err != nil {
		return err
	}
	bound := fmt.Sprintf(`{"metadata":{"annotations":{%q:"yes",%q:"yes"}},"spec":{"volumeName":%q}}`,
		storage.AnnBindCompleted, storage.AnnBoundByController, volume)
	if _, err := c.patchClaim(ctx, claim, bound); err != nil {
		return err
	}
	_, err := c.patchClaim(ctx, claim, claimIsBound, "status")
	return err
}

// reclaim makes the three writes and three reads that reclaim the volume of a deleted claim,
// and a fourth write that deletes the volume if no user has.
func (c *ceiling) reclaim(ctx context.Context, claim, volume string) error {
	if _, err := c.patchClaim(ctx, claim, `{"metadata":{"finalizers":null}}`); err != nil {
		return err
	}
	if err := c.readGone(ctx, c.loops, claim); err != nil {
		return err
	}
	released := fmt.Sprintf(`{"metadata":{"finalizers":[%q]},"status":{"phase":"Released"}}`, finalizer.External)
	if err := c.patchVolume(ctx, c.loops, volume, released, "status"); err != nil {
		return err
	}
	volumes := c.sidecar.CoreV1().PersistentVolumes()
	if _, err := volumes.Get(ctx, volume, metav1.GetOptions{}); err != nil {
		return fmt.Errorf("read volume: %w", err)
	}
	if err := c.readGone(ctx, c.sidecar, claim); err != nil {
		return err
	}
	sandbox.Pause(ctx, c.latency)
	if c.order == plan.ClaimFirst {
		if err := volumes.Delete(ctx, volume, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete volume: %w", err)
		}
	}
	return c.patchVolume(ctx, c.sidecar, volume, `{"metadata":{"finalizers":null}}`)
}

// readGone reads a claim that does not exist.
func (c *ceiling) readGone(ctx context.Context, client kubernetes.Interface, claim string) error {
	_, err := client.CoreV1().PersistentVolumeClaims(c.namespace).Get(ctx, claim, metav1.GetOptions{})
	if apierrors.ReasonForError(err) != metav1.StatusReasonNotFound {
		return fmt.Errorf("read claim: %w, want %s", err, http.StatusText(http.StatusNotFound))
	}
	return nil
}

func (c *ceiling) patchClaim(ctx context.Context, name, body string, sub ...string) (*v1.PersistentVolumeClaim, error) {
	claim, err := c.loops.CoreV1().PersistentVolumeClaims(c.namespace).
		Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}, sub...)
	if err != nil {
		return nil, fmt.Errorf("patch claim: %w", err)
	}
	return claim, nil
}

func (c *ceiling) patchVolume(ctx context.Context, client kubernetes.Interface, name, body string,
	sub ...string) error {
	if _, err := client.CoreV1().PersistentVolumes().Patch(ctx, name, types.MergePatchType, []byte(body),
		metav1.PatchOptions{}, sub...); err != nil {
		return fmt.Errorf("patch volume: %w", err)
	}
	return nil
}
