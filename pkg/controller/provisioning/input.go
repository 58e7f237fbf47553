package provisioning

import (
	"context"
	"fmt"
	"sync"

	"github.com/kubernetes-csi/csi-lib-utils/accessmodes"
	"k8s.io/apimachinery/pkg/types"
	library "sigs.k8s.io/sig-storage-lib-external-provisioner/v10/controller"

	"github.com/exeunt-io/exeunt/pkg/provision"
)

// InputsConfig is what a volume is made from, apart from claim and class.
type InputsConfig struct {
	// Driver makes the volumes.
	Driver Driver
	// DefaultFSType serves claims whose class names no file system; it may be empty.
	DefaultFSType string
}

// Inputs gathers what a volume is made from.
type Inputs struct {
	config InputsConfig

	mu sync.Mutex
	// kept is what the driver was asked for and may still be at, by the claim's UID.
	kept map[types.UID]provision.Input
}

// NewInputs returns the inputs of one driver's volumes.
func NewInputs(config InputsConfig) *Inputs {
	return &Inputs{config: config, kept: map[types.UID]provision.Input{}}
}

// For returns what the claim's volume is made from. While the outcome of an
// earlier call is unknown it is what that call was made with: a driver takes the
// same name with other parameters for a mistake (CSI specification, "CreateVolume").
//
// Its errors say what is missing; a [provision.Refusal] stays until claim or class
// change.
func (i *Inputs) For(_ context.Context, options library.ProvisionOptions) (provision.Input, error) {
	if kept, ok := i.keptFor(options.PVC.UID); ok {
		return kept, nil
	}
	driver := i.config.Driver
	mode, err := accessmodes.ToCSIAccessMode(options.PVC.Spec.AccessModes, driver.TellsWriters())
	if err != nil {
		return provision.Input{}, fmt.Errorf("translate access modes of the claim: %w", err)
	}
	if options.SelectedNode != nil && driver.HasTopology() {
		return provision.Input{}, &provision.Refusal{Sentence: fmt.Sprintf("Driver %s has topology, and this provisioner cannot yet place a volume near node %s; use a storage class with volumeBindingMode Immediate", driver.Name(), options.SelectedNode.Name)}
	}
	return provision.Input{
		Name: options.PVName, Claim: options.PVC, Class: options.StorageClass,
		AccessMode: mode, DefaultFSType: i.config.DefaultFSType, Topology: driver.HasTopology(),
	}, nil
}

// Keep remembers what the driver was asked for and may still be at.
func (i *Inputs) Keep(claim types.UID, input provision.Input) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.kept[claim] = input
}

// Forget drops what was kept: the outcome is known.
func (i *Inputs) Forget(claim types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.kept, claim)
}

func (i *Inputs) keptFor(claim types.UID) (provision.Input, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	input, ok := i.kept[claim]
	return input, ok
}
