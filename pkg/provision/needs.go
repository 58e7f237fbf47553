package provision

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Needs is what must be read before a volume can be asked for.
type Needs struct {
	// Source is what the volume is filled from.
	Source Source
	// Secrets are those that the class names.
	Secrets Secrets
	// AttributesClass is the VolumeAttributesClass that the claim names, "" for none.
	AttributesClass string
}

// NeedsOf returns what must be read before the claim's volume can be asked for, or
// why it never will be: a [Refusal], or [NotOurs] for one that somebody else makes.
// The class is in terms of the driver.
func NeedsOf(claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass, driver Driver, volume string) (Needs, error) {
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

// refusal names what the claim asks for and no volume of the driver can have.
func refusal(claim *v1.PersistentVolumeClaim, needs Needs, driver Driver) error {
	switch {
	case claim.Spec.Selector != nil:
		return refuse("The claim has a selector, which only finds volumes that exist; remove it to have one provisioned")
	case needs.Source.Kind == Snapshot && !driver.Snapshots:
		return refuse("The claim's data source is a snapshot, and driver %s makes no volumes from snapshots (it lacks the capability CREATE_DELETE_SNAPSHOT)", driver.Name)
	case needs.Source.Kind == Clone && !driver.Clones:
		return refuse("The claim's data source is a claim, and driver %s makes no volumes from volumes (it lacks the capability CLONE_VOLUME)", driver.Name)
	case needs.AttributesClass != "" && !driver.Modifies:
		return refuse("The claim has a VolumeAttributesClass, and driver %s takes none (it lacks the capability MODIFY_VOLUME)", driver.Name)
	case claim.Spec.Resources.Requests.Storage().Sign() < 0:
		return refuse("The claim requests a negative capacity")
	}
	return nil
}

// Attributes returns the parameters of the VolumeAttributesClass that a claim
// names; nil is one that does not exist.
func Attributes(name string, class *storagev1.VolumeAttributesClass, driver string) (map[string]string, error) {
	switch {
	case class == nil:
		return nil, notYet("The claim names the VolumeAttributesClass %q, which does not exist", name)
	case class.DriverName != driver:
		return nil, notYet("The claim names the VolumeAttributesClass %q, which is for driver %s and not for %s", name, class.DriverName, driver)
	}
	return class.Parameters, nil
}
