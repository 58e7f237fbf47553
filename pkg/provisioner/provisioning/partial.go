package provisioning

import (
	v1 "k8s.io/api/core/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/controller/partial"
	"github.com/exeunt-io/exeunt/pkg/finalizer"
)

// Rules return what the informers decode. Of volumes and claims of other drivers, that is
// what the handlers of deleted objects read: a deletion may free a name.
func (n Names) Rules() partial.Rules {
	volume, claim := v1.PersistentVolume{}, v1.PersistentVolumeClaim{}
	driver := "spec.persistentVolumeSource.csi.driver"
	names := append([]string{n.Driver}, n.Migrated...)
	return partial.Rules{
		"Node": controller.NodeRule(),
		"PersistentVolume": {
			Fields:  partial.Except(volume, "metadata.managedFields"),
			Foreign: partial.Only(volume, "metadata.name", "metadata.uid", "metadata.resourceVersion", "spec.claimRef", driver),
			Whole:   names, Has: partial.PathOf(volume, driver),
		},
		"PersistentVolumeClaim": {
			Fields:  partial.Except(claim, "metadata.managedFields"),
			Foreign: partial.Only(claim, "metadata.namespace", "metadata.name", "metadata.uid", "metadata.resourceVersion"),
			// the finalizer and the kinds of sources that OwnsClaim looks for
			Whole: append(names, string(finalizer.CloneSource), "PersistentVolumeClaim", "VolumeSnapshot"),
		},
	}
}
