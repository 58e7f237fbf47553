package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

// uidLength is how many characters a UID has without its dashes.
const uidLength = 32

// provisioningOptions say what volumes are made like.
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
	flags.StringVar(&s.NamePrefix, "volume-name-prefix", s.NamePrefix, "beginning of the names of volumes; a dash and the claim's UID follow")
	flags.IntVar(&s.NameLength, "volume-name-uuid-length", s.NameLength, "characters of the claim's UID, without its dashes, in the names of volumes; -1 is all of them, with the dashes")
	flags.StringVar(&s.DefaultFSType, "default-fstype", s.DefaultFSType, "file system of volumes whose class names none")
	flags.BoolVar(&s.ExtraMetadata, "extra-create-metadata", s.ExtraMetadata, "tell the driver the names of claim and volume, as parameters")
	flags.BoolVar(&s.PublishReadOnly, "controller-publish-readonly", s.PublishReadOnly, "make volumes read-only whose claim has the access mode ReadOnlyMany alone")
	flags.BoolVar(&s.KeepMode, "prevent-volume-mode-conversion", s.KeepMode, "restore a snapshot in another volume mode only if its VolumeSnapshotContent allows it")
	flags.BoolVar(&o.strictTopology, "strict-topology", o.strictTopology, "WaitForFirstConsumer: ask for the chosen node's place alone, not for all places that nodes have")
	flags.BoolVar(&o.immediateTopology, "immediate-topology", o.immediateTopology, "Immediate: ask for the places that nodes have; if false, for no place")
}

func (o *provisioningOptions) check() error {
	switch s := o.settings; {
	case s.NamePrefix == "":
		return errors.New("--volume-name-prefix must not be empty")
	case len(validation.IsDNS1123Subdomain(s.NamePrefix+"-0")) > 0:
		return fmt.Errorf("--volume-name-prefix=%s cannot begin the name of a PersistentVolume: %s", s.NamePrefix, strings.Join(validation.IsDNS1123Subdomain(s.NamePrefix+"-0"), "; "))
	case s.NameLength != -1 && (s.NameLength < 1 || s.NameLength > uidLength):
		return fmt.Errorf("--volume-name-uuid-length must be -1, or from 1 to %d", uidLength)
	}
	return nil
}
