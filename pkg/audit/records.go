package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/audit/verdict"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// validations is the number of ValidateVolumeCapabilities calls at a time.
const validations = 8

// examineRecords asks the driver for the volume of every PersistentVolume that is not
// listed, and returns the PersistentVolumes of the first cluster that have no volume.
func (s *survey) examineRecords(ctx context.Context) []Ghost {
	if s.Driver == nil {
		return nil
	}
	var mu sync.Mutex
	var ghosts []Ghost
	unlistedCount, example := 0, ""
	var group errgroup.Group
	group.SetLimit(validations)
	for _, candidate := range s.unlisted {
		if s.lister != nil && s.enumerated && s.second.handles.has(candidate.handle) {
			continue
		}
		group.Go(func() error {
			class, err := s.examine(ctx, candidate)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				s.refs.miss(err.Error())
			case class == verdict.Unlisted:
				unlistedCount++
				example = cmp.Or(example, candidate.name)
			case class == verdict.Ghost && candidate.cluster == s.Clusters[0]:
				ghosts = append(ghosts, Ghost{Handle: candidate.handle, Name: candidate.name, Cluster: candidate.cluster.Name})
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return no error
	if s.lister != nil && s.enumerated && unlistedCount > 0 {
		s.enumerated = false
		s.refs.miss(fmt.Sprintf("driver %s does not list the volumes of %d PersistentVolumes, such as %s, and does not say that they do not exist: it may list those of another zone, node or account", s.driverName, unlistedCount, example))
	}
	slices.SortFunc(ghosts, func(a, b Ghost) int { return cmp.Compare(a.Name, b.Name) })
	return ghosts
}

// examine returns the verdict on one PersistentVolume. The object is read live before and
// after the call.
func (s *survey) examine(ctx context.Context, candidate unlisted) (verdict.RecordClass, error) {
	volume, err := candidate.read(ctx)
	if volume == nil || err != nil {
		return verdict.Sound, err
	}
	state := verdict.RecordState{Answer: s.ask(ctx, candidate.handle, volume)}
	if volume, err = candidate.read(ctx); err != nil {
		return verdict.Sound, err
	}
	if volume != nil {
		state.Present = true
		state.Released = storage.PhaseOf(volume.Status.Phase).Released()
		state.Terminating = volume.DeletionTimestamp != nil
	}
	return verdict.DecideRecord(state), nil
}

// read reads the PersistentVolume live. It returns nil if it is gone.
func (u unlisted) read(ctx context.Context) (*v1.PersistentVolume, error) {
	ctx, cancel := context.WithTimeout(ctx, u.cluster.Timeout)
	defer cancel()
	volume, err := u.cluster.client.CoreV1().PersistentVolumes().Get(ctx, u.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("no right to get persistentvolumes in cluster %s: grant the verb get on resource persistentvolumes of apiGroup \"\"", u.cluster.Name)
	case err != nil:
		return nil, fmt.Errorf("could not read PersistentVolume %s in cluster %s: %w", u.name, u.cluster.Name, err)
	case volume.UID != u.uid:
		return nil, nil
	}
	return volume, nil
}

// ask asks the driver whether the volume exists. Only NotFound says that it does not.
func (s *survey) ask(ctx context.Context, handle string, volume *v1.PersistentVolume) verdict.Existence {
	request := &spec.ValidateVolumeCapabilitiesRequest{VolumeId: handle, VolumeCapabilities: capabilitiesOf(volume)}
	if volume.Spec.CSI != nil {
		request.VolumeContext = volume.Spec.CSI.VolumeAttributes
	}
	_, err := s.Driver.ValidateVolumeCapabilities(ctx, request)
	switch status.Code(err) {
	case codes.OK:
		return verdict.Exists
	case codes.NotFound:
		return verdict.Absent
	default:
		return verdict.Unanswered
	}
}

// capabilitiesOf returns the access of the PersistentVolume in terms of CSI.
func capabilitiesOf(volume *v1.PersistentVolume) []*spec.VolumeCapability {
	var all []*spec.VolumeCapability
	for _, mode := range volume.Spec.AccessModes {
		capability := &spec.VolumeCapability{
			AccessMode: &spec.VolumeCapability_AccessMode{Mode: accessModes[mode]},
			AccessType: &spec.VolumeCapability_Mount{Mount: &spec.VolumeCapability_MountVolume{}},
		}
		if storage.ModeOf(volume.Spec.VolumeMode) == v1.PersistentVolumeBlock {
			capability.AccessType = &spec.VolumeCapability_Block{Block: &spec.VolumeCapability_BlockVolume{}}
		}
		all = append(all, capability)
	}
	return all
}

// accessModes are the access modes of CSI that every driver knows.
var accessModes = map[v1.PersistentVolumeAccessMode]spec.VolumeCapability_AccessMode_Mode{
	v1.ReadWriteOnce:    spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
	v1.ReadWriteOncePod: spec.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
	v1.ReadOnlyMany:     spec.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
	v1.ReadWriteMany:    spec.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
}

// plain returns the error as a sentence: a gRPC error without its code for a late answer.
func plain(err error) string {
	if status.Code(errors.Unwrap(err)) == codes.DeadlineExceeded {
		return "it did not answer ListVolumes in time"
	}
	return err.Error()
}
