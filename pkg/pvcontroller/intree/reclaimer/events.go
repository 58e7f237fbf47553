package reclaimer

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/reclaim/plugin"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Event reasons of kube-controller-manager, which scripts and alerts match. words_test.go
// lists the key words of the messages.
const (
	volumeFailedDelete         = "VolumeFailedDelete"
	volumeDelete               = "VolumeDelete"
	volumeFailedRecycle        = "VolumeFailedRecycle"
	volumeRecycled             = "VolumeRecycled"
	recyclerPod                = "RecyclerPod"
	volumeUnknownReclaimPolicy = "VolumeUnknownReclaimPolicy"
)

// event is a Kubernetes event about a volume.
type event = controller.Event

// failure returns the event for the reason why a volume is Failed.
func failure(volume *v1.PersistentVolume, reason plugin.Reason) event {
	policy := volume.Spec.PersistentVolumeReclaimPolicy
	switch {
	case reason == plugin.UnknownPolicy:
		return controller.WarningEvent(volumeUnknownReclaimPolicy,
			fmt.Sprintf("Volume has unrecognized PersistentVolumeReclaimPolicy %q; the volume is left as it is", policy))
	case policy == v1.PersistentVolumeReclaimRecycle:
		return controller.WarningEvent(volumeFailedRecycle,
			"No recycler plugin found for the volume; the volume is left as it is")
	}
	return controller.WarningEvent(volumeFailedDelete, noDeleter(volume)+
		"; the data is left as it is: delete it by hand, or set the policy of the volume to Retain to keep it")
}

// noDeleter names the plugin that provisioned the volume, or the volume if there is none.
func noDeleter(volume *v1.PersistentVolume) string {
	if plugin := volume.Annotations[storage.AnnDynamicallyProvisioned]; plugin != "" {
		return "no volume plugin matched name: " + plugin
	}
	return fmt.Sprintf("error getting deleter volume plugin for volume %q: no deletable volume plugin matched",
		volume.Name)
}

func deletionFailure(err error) event {
	return controller.WarningEvent(volumeFailedDelete, err.Error())
}

// stillInUse is no failure: the plugin needs more time.
func stillInUse(err error) event {
	return controller.NormalEvent(volumeDelete, err.Error())
}

func recyclingFailure(err error) event {
	return controller.WarningEvent(volumeFailedRecycle, "Recycle failed: "+err.Error())
}

// podFailure returns the error for the message in the status of a failed recycler pod.
func podFailure(message string) error {
	if message == "" {
		message = "the recycler pod failed, pod.Status.Message unknown"
	}
	return fmt.Errorf("failed to recycle volume: %s", message)
}

// podRefusal returns the error of a recycler pod that was not created.
func podRefusal(err error) error {
	return fmt.Errorf("unexpected error creating recycler pod: %w", err)
}

func recycledEvent() event {
	return controller.NormalEvent(volumeRecycled, "Volume recycled")
}

// recyclerEvent returns an event about the recycler pod.
func recyclerEvent(message string) event {
	return controller.NormalEvent(recyclerPod, "Recycler pod: "+message)
}

// reportWait reports the volume or the pods that the volume waits for.
func (c *Controller) reportWait(o observation, reason plugin.Reason) {
	switch {
	case reason == plugin.HandleShared && len(o.sharing) > 0:
		c.Reporter.Report(o.volume, c.sharedEvent(o.volume, o.sharing[0]))
	case reason == plugin.VolumeUsed:
		c.Reporter.Report(o.volume, controller.NormalEvent(volumeFailedRecycle,
			fmt.Sprintf("Volume is used by pods: %s; the volume is recycled once none of them runs",
				strings.Join(c.usersOf(o), ","))))
	}
}

// sharedEvent returns the event about a volume whose deletion would delete data of the other.
func (c *Controller) sharedEvent(volume, other *v1.PersistentVolume) event {
	message := "The volume is not reclaimed, because the data of volume %q is at the same place or below it; if that volume is in use, set the policy of this one to Retain"
	if !slices.Contains(c.Plugins.Places(other), c.Plugins.Location(volume)) {
		message = "The volume is not reclaimed, because its data is inside the directory of volume %q; if that volume is in use, set the policy of this one to Retain"
	}
	return controller.WarningEvent(string(plugin.HandleShared), fmt.Sprintf(message, other.Name))
}
