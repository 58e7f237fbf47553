package provision

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/exeunt-io/exeunt/pkg/storage"
)

// Needs is what must be read before a request can be built.
type Needs struct {
	// Source is what the volume is filled from.
	Source storage.DataSource
	// Secrets are the secrets in the class parameters.
	Secrets Secrets
	// AttributesClass is the VolumeAttributesClass that the claim names, "" for none.
	AttributesClass string
}

// NeedsOf returns what must be read before the claim's request can be built. The error is a
// [Refusal], or a [LeftToOther] if another provisioner serves the claim. A class of an
// in-tree plugin is translated to CSI before.
func NeedsOf(claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass, driver Driver,
	volume string) (Needs, error) {
	source, err := sourceOf(claim)
	if err != nil {
		return Needs{}, err
	}
	needs := Needs{Source: source}
	if claim.Spec.VolumeAttributesClassName != nil {
		needs.AttributesClass = *claim.Spec.VolumeAttributesClassName
	}
	if err := refusal(claim, needs, driver); err != nil {
		return Needs{}, err
	}
	if _, _, err := parametersOf(class); err != nil {
		return Needs{}, err
	}
	needs.Secrets, err = SecretsOf(class, claim, volume)
	return needs, err
}

// refusal returns why no volume of the driver can serve the claim.
func refusal(claim *v1.PersistentVolumeClaim, needs Needs, driver Driver) error {
	switch {
	case claim.Spec.Selector != nil:
		return refuse("claim Selector is not supported, it only finds volumes that exist; remove the selector to have a volume provisioned")
	case needs.Source.Kind == storage.SourceSnapshot && !driver.Snapshots:
		return refuse("CSI driver %s does not support snapshot restore: it lacks the capability CREATE_DELETE_SNAPSHOT",
			driver.Name)
	case needs.Source.Kind == storage.SourceClaim && !driver.Clones:
		return refuse("CSI driver %s does not support clone operations: it lacks the capability CLONE_VOLUME", driver.Name)
	case needs.AttributesClass != "" && !driver.Modifies:
		return refuse("CSI driver %s does not support VolumeAttributesClass: it lacks the capability MODIFY_VOLUME",
			driver.Name)
	case claim.Spec.Resources.Requests.Storage().Sign() < 0:
		return refuse("The claim requests a negative capacity")
	}
	return nil
}

// Attributes returns the parameters of the VolumeAttributesClass that a claim
// names; a nil class does not exist.
func Attributes(name string, class *storagev1.VolumeAttributesClass, driver string) (map[string]string, error) {
	switch {
	case class == nil:
		return nil, notReady("volumeattributesclasses.storage.k8s.io %q not found, which the claim names", name)
	case class.DriverName != driver:
		return nil, notReady("VAC %s referenced in PVC is for driver %s and does not match driver name %s", name,
			class.DriverName, driver)
	}
	return class.Parameters, nil
}
