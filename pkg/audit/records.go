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

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/audit/verdict"
	"github.com/exeunt-io/exeunt/pkg/storage"
)

// validations is the number of ValidateVolumeCapabilities calls at a time.
const validations = 8

// maxLate is the number of requests without an answer after which no further
// PersistentVolume is asked for.
const maxLate = 2 * validations

// examined counts what was found out about PersistentVolumes that are not listed.
type examined struct {
	ghosts []Ghost
	// unlisted is the number of PersistentVolumes that have a volume, or may have one. Of
	// these, the driver gave no answer about unanswered, and was not asked about skipped.
	unlisted, unanswered, skipped int
	// late is the number of requests without an answer.
	late int
	// example is the name of one that is unlisted, doubtful of one that is unanswered.
	example, doubtful string
}

// examineRecords asks the driver for the volume of every PersistentVolume that is not
// listed, and returns the PersistentVolumes of the first cluster that have no volume.
func (s *survey) examineRecords(ctx context.Context) []Ghost {
	if s.Driver == nil {
		s.compareFile(ctx)
		return nil
	}
	var mu sync.Mutex
	var all examined
	var group errgroup.Group
	group.SetLimit(validations)
	for _, candidate := range s.unlisted {
		if s.lister != nil && s.enumerated && s.second.handles.has(candidate.handle) {
			continue
		}
		group.Go(func() error {
			mu.Lock()
			giveUp := all.late >= maxLate
			if giveUp {
				all.skipped++
			}
			mu.Unlock()
			if giveUp {
				return nil
			}
			found, err := s.examine(ctx, candidate)
			mu.Lock()
			defer mu.Unlock()
			s.count(&all, candidate, found, err)
			return nil
		})
	}
	_ = group.Wait() // the functions return no error
	s.missRecords(all)
	slices.SortFunc(all.ghosts, func(a, b Ghost) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Compact(all.ghosts) // a list that started over has objects twice
}

// compareFile looks whether the file lists the volume of each PersistentVolume that exists. No driver says
// whether a volume that is not listed exists: the file may be the list of another zone, node or account.
func (s *survey) compareFile(ctx context.Context) {
	alike := set{}
	for _, handle := range s.first.handles {
		alike.add(verdict.Spelling(handle))
	}
	for _, candidate := range s.unlisted {
		if s.second.handles.has(candidate.handle) || alike.has(verdict.Spelling(candidate.handle)) {
			continue
		}
		volume, err := candidate.read(ctx)
		switch {
		case err != nil:
			s.refs.miss(err.Error())
			return
		case volume != nil:
			s.enumerated = false
			s.refs.miss(fmt.Sprintf("the file %s does not list the volumes of all PersistentVolumes, such as %s: it may be the list of another zone, node or account, or older than the PersistentVolume", s.File, candidate.name))
			return
		}
	}
}

// count adds what was found out about one PersistentVolume.
func (s *survey) count(all *examined, candidate unlisted, found finding, err error) {
	if found.late {
		all.late++
	}
	switch {
	case err != nil:
		s.refs.miss(err.Error())
	case found.class == verdict.Unlisted:
		all.unlisted++
		all.example = cmp.Or(all.example, candidate.name)
		if found.answer == verdict.Unanswered {
			all.unanswered++
			all.doubtful = cmp.Or(all.doubtful, candidate.name)
		}
	case found.class == verdict.Ghost && candidate.cluster == s.Clusters[0]:
		all.ghosts = append(all.ghosts, Ghost{Handle: candidate.handle, Name: candidate.name,
			Cluster: candidate.cluster.Name})
	}
}

// missRecords records which volumes the driver did not list, or did not tell anything of.
func (s *survey) missRecords(all examined) {
	switch {
	case s.lister != nil && s.enumerated && all.unlisted > 0:
		s.enumerated = false
		s.refs.miss(fmt.Sprintf("driver %s does not list the volumes of %d PersistentVolumes, such as %s, and does not say that they do not exist: it may list those of another zone, node or account", s.driverName, all.unlisted, all.example))
	case all.unanswered > 0:
		s.refs.miss(fmt.Sprintf("driver %s does not say of %d PersistentVolumes, such as %s, whether their volumes exist",
			s.driverName, all.unanswered, all.doubtful))
	}
	if all.skipped > 0 {
		s.refs.miss(fmt.Sprintf("%d PersistentVolumes were not looked at, because %d requests about others did not answer",
			all.skipped, all.late))
	}
}

// finding is what was found out about one PersistentVolume.
type finding struct {
	class  verdict.RecordClass
	answer verdict.Existence
	// late: the driver or the API server did not answer.
	late bool
}

// examine returns what is known of one PersistentVolume. The object is read live before and
// after the call.
func (s *survey) examine(ctx context.Context, candidate unlisted) (finding, error) {
	volume, err := candidate.read(ctx)
	if volume == nil || err != nil {
		return finding{class: verdict.Sound, late: err != nil}, err
	}
	answer, late := s.ask(ctx, candidate.handle, volume)
	state := verdict.RecordState{Answer: answer}
	if volume, err = candidate.read(ctx); err != nil {
		return finding{class: verdict.Sound, late: true}, err
	}
	if volume != nil {
		state.Present = true
		state.Released = storage.PhaseOf(volume.Status.Phase).Released()
		state.Terminating = volume.DeletionTimestamp != nil
	}
	return finding{verdict.DecideRecord(state), answer, late}, nil
}

// read reads the PersistentVolume live. It returns nil if it is gone.
func (u unlisted) read(ctx context.Context) (*v1.PersistentVolume, error) {
	ctx, cancel := context.WithTimeout(ctx, u.cluster.Timeout)
	defer cancel()
	volume, exists, err := answer.Get(ctx, u.name, u.cluster.client.CoreV1().PersistentVolumes().Get)
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("no right to get persistentvolumes in cluster %s: grant the verb get on resource persistentvolumes of apiGroup \"\"", u.cluster.Name)
	case err != nil:
		return nil, fmt.Errorf("could not read PersistentVolume %s in cluster %s: %w", u.name, u.cluster.Name, err)
	case !exists || volume.UID != u.uid:
		return nil, nil
	}
	return volume, nil
}

// ask asks the driver whether the volume exists. Only NotFound says that it does not. late
// means that the driver did not answer.
func (s *survey) ask(ctx context.Context, handle string,
	volume *v1.PersistentVolume) (answer verdict.Existence, late bool) {
	request := &spec.ValidateVolumeCapabilitiesRequest{VolumeId: handle, VolumeCapabilities: capabilitiesOf(volume)}
	if volume.Spec.CSI != nil {
		request.VolumeContext = volume.Spec.CSI.VolumeAttributes
	}
	_, err := s.Driver.ValidateVolumeCapabilities(ctx, request)
	switch status.Code(err) {
	case codes.OK:
		return verdict.Exists, false
	case codes.NotFound:
		return verdict.Absent, false
	case codes.DeadlineExceeded, codes.Unavailable:
		return verdict.Unanswered, true
	default:
		return verdict.Unanswered, false
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
