package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

// uidLength is the number of characters of a UID without its dashes.
const uidLength = 32

// provisioningOptions are the flags of volume creation.
type provisioningOptions struct {
	settings                          provision.Settings
	strictTopology, immediateTopology bool
}

func newProvisioningOptions() provisioningOptions {
	return provisioningOptions{
		settings:          provision.Settings{NamePrefix: "pvc", NameLength: -1, KeepMode: true},
		immediateTopology: true,
	}
}

func (o *provisioningOptions) addFlags(flags *pflag.FlagSet) {
	s := &o.settings
	flags.StringVar(&s.NamePrefix, "volume-name-prefix", s.NamePrefix,
		"prefix of volume names; a dash and the claim's UID follow")
	flags.IntVar(&s.NameLength, "volume-name-uuid-length", s.NameLength,
		"number of characters of the claim's UID in volume names, without dashes; -1 for the whole UID with dashes")
	flags.StringVar(&s.DefaultFSType, "default-fstype", s.DefaultFSType,
		"file system of volumes whose storage class names none")
	flags.BoolVar(&s.ExtraMetadata, "extra-create-metadata", s.ExtraMetadata,
		"pass the names of claim and PersistentVolume to the driver as parameters")
	flags.BoolVar(&s.PublishReadOnly, "controller-publish-readonly", s.PublishReadOnly,
		"publish volumes read-only if the claim's only access mode is ReadOnlyMany")
	flags.BoolVar(&s.KeepMode, "prevent-volume-mode-conversion", s.KeepMode,
		"restore a snapshot in another volume mode only if its VolumeSnapshotContent allows the conversion")
	flags.BoolVar(&o.strictTopology, "strict-topology", o.strictTopology,
		"WaitForFirstConsumer: request the topology of the selected node only, not the topologies of all nodes")
	flags.BoolVar(&o.immediateTopology, "immediate-topology", o.immediateTopology,
		"Immediate: request the topologies of all nodes; if false, request no topology")
}

func (o *provisioningOptions) check() error {
	switch s := o.settings; {
	case s.NamePrefix == "":
		return errors.New("--volume-name-prefix must not be empty")
	case len(validation.IsDNS1123Subdomain(s.NamePrefix+"-0")) > 0:
		return fmt.Errorf("--volume-name-prefix=%s cannot be the prefix of a PersistentVolume name: %s", s.NamePrefix,
			strings.Join(validation.IsDNS1123Subdomain(s.NamePrefix+"-0"), "; "))
	case s.NameLength != -1 && (s.NameLength < 1 || s.NameLength > uidLength):
		return fmt.Errorf("--volume-name-uuid-length must be -1, or from 1 to %d", uidLength)
	}
	return nil
}
