package deletion

import (
	"errors"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller/metrics"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csibackend"
	"github.com/exeunt-io/exeunt/pkg/reclaim"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
)

// Every event of a volume is written out here, to be read. A volume has no namespace, and no event names its claim.
func TestEventsAreSentences(t *testing.T) {
	denied := &answer.Refusal{Answer: errors.New(`admission webhook "w" denied the request`)}
	leaked := released("pv")
	leaked.Annotations[reclaim.Annotation] = reclaim.AnnotationPending
	for name, tc := range map[string]struct {
		report func(c *Controller, volume *v1.PersistentVolume)
		want   string
	}{
		"driver fails": {func(c *Controller, v *v1.PersistentVolume) {
			_ = c.countFailure(v, errors.New("rpc error: code = Internal desc = disk is busy"))
		}, "Warning VolumeFailedDelete rpc error: code = Internal desc = disk is busy"},
		"finalizer is refused": {func(c *Controller, v *v1.PersistentVolume) { _ = c.Reporter.ReportRefusal(v, addsFinalizer, denied) },
			`Warning WriteRefused Adding the finalizer external-provisioner.volume.kubernetes.io/finalizer, which keeps the volume until its disk is deleted, failed, and is repeated with backoff: admission webhook "w" denied the request`},
		"annotation is refused": {func(c *Controller, v *v1.PersistentVolume) { _ = c.Reporter.ReportRefusal(v, writesStatus, denied) },
			`Warning WriteRefused Writing the annotation exeunt.io/reclaim failed, and is repeated with backoff: admission webhook "w" denied the request`},
		"disk is shared": {func(c *Controller, v *v1.PersistentVolume) { c.report(v, external.HandleShared) },
			`Warning VolumeHandleShared The disk is not deleted, because volume "other" has the same disk, or a directory in it; if that volume is in use, set the policy of this one to Retain`},
		"volume is attached": {func(c *Controller, v *v1.PersistentVolume) { c.report(v, external.StillAttached) },
			"Normal VolumeDelete persistentvolume pv is still attached to node b, waiting for detach"},
		"deleted before its finalizer": {func(c *Controller, v *v1.PersistentVolume) { c.report(v, external.TooLateToProtect) },
			"Warning TooLateToProtect The volume was deleted before its finalizer was added. The driver deletes the data once the claim is gone if the pv-controller supports the annotation exeunt.io/reclaim and keeps the volume until then; with any other controller the data stays in the storage system"},
		"disk is left": {func(c *Controller, _ *v1.PersistentVolume) { c.reportLeak(leaked) },
			`Warning TooLateToProtect The PersistentVolume was deleted, and its data is still in the storage system as "h"; delete the data there if nobody needs it`},
	} {
		t.Run(name, func(t *testing.T) {
			volume, other := released("pv"), released("other")
			other.UID = "other"
			c, events := newReporting(t, fake.NewClientset(), volume, other)
			if err := c.Attachments.GetStore().Add(attachmentTo("b", volume)); err != nil {
				t.Fatal(err)
			}
			tc.report(c, volume)
			if count := len(events.Events); count != 1 {
				t.Fatalf("%d events", count)
			}
			if got := <-events.Events; got != tc.want {
				t.Errorf("event\n%s, want\n%s", got, tc.want)
			}
		})
	}
}

// newReporting returns a controller whose cache has the volumes, and its events.
func newReporting(t *testing.T, client *fake.Clientset,
	volumes ...*v1.PersistentVolume) (*Controller, *record.FakeRecorder) {
	t.Helper()
	factory, events, driver := informers.NewSharedInformerFactory(client, 0), record.NewFakeRecorder(10), &shredder{}
	c, err := New(Config{
		Client: client, Deleter: &csibackend.Deleter{Client: client, Driver: driver, Translator: driver}, Honor: true,
		Volumes:     factory.Core().V1().PersistentVolumes().Informer(),
		Attachments: factory.Storage().V1().VolumeAttachments().Informer(),
		Reporter:    controller.NewReporter(events), Metrics: metrics.New("reporting"), Locks: &controller.KeyLocks{},
		Backoff: controller.Backoff{Initial: time.Second, Max: time.Second},
	})
	for _, volume := range volumes {
		err = errors.Join(err, c.Volumes.GetStore().Add(volume))
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, events
}
