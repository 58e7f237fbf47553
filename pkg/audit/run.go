package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Config configures an audit.
type Config struct {
	// Driver is the CSI driver; nil if only a file lists the volumes.
	Driver Driver
	// DriverName is the name of the driver if Driver is nil.
	DriverName string
	// File is the path of a list of volumes, see [ReadFile]; "" for none. The file counts as
	// the list of volumes if the driver cannot list them; otherwise it adds names, sizes and
	// ages.
	File string
	// Clusters are all clusters that use the storage system. The first is the cluster of
	// the driver.
	Clusters []*Cluster
	// Settle is the time between the two passes.
	Settle time.Duration
}

// survey collects what an audit reads.
type survey struct {
	Config
	driverName string
	lister     lister
	refs       *references

	// enumerated: all lists of volumes so far were complete and right.
	enumerated bool
	// anyRecorded: the first list has a volume of a PersistentVolume.
	anyRecorded bool
	// first and second are the volumes of the two lists. second keeps only candidates.
	first  firstList
	second secondList
	// details are from the file, for candidates.
	details map[string]Volume
	// listed are the handles of the latest complete list.
	listed set
	// unlisted are PersistentVolumes whose handle was in no list, from the first pass.
	unlisted []unlisted
	// names are the PersistentVolumes of shared handles, from the second pass.
	names map[string][]sharedRecord
}

// unlisted is a PersistentVolume whose volume is not listed.
type unlisted struct {
	cluster      *Cluster
	name, handle string
	uid          types.UID
}

// sharedRecord is a PersistentVolume whose handle another PersistentVolume has too.
type sharedRecord struct {
	SharedVolume
	uid types.UID
}

// firstList is the first list of volumes, as small as possible: clusters have 100,000.
type firstList struct {
	handles []string
	// attached are handles, sources the handles of volumes that were cloned.
	attached, sources set
}

// secondList has those volumes of the second list that nothing refers to.
type secondList struct {
	// candidates are the wanted handles: those without a reference in the first pass.
	candidates set
	volumes    []Volume
	// handles are all listed handles, sources the handles of volumes that were cloned.
	handles, sources set
	// sameNames and otherNames count volumes whose listed name is, and is not, the name of
	// the PersistentVolume that a provisioner created for them.
	sameNames, otherNames int
}

// Run audits. Its error means that nothing can be said; what could not be read beside that
// is in the report.
func Run(ctx context.Context, config Config) (*Report, error) {
	s := &survey{Config: config, driverName: config.DriverName, listed: set{}, names: map[string][]sharedRecord{}}
	if config.Driver != nil {
		s.driverName = config.Driver.Name()
	}
	s.refs = newReferences(s.driverName)
	for _, cluster := range config.Clusters {
		if err := cluster.reach(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.selectLister(); err != nil {
		return nil, err
	}
	if err := s.firstPass(ctx); err != nil {
		return nil, err
	}
	if err := s.secondPass(ctx); err != nil {
		return nil, err
	}
	records := s.examineRecords(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return s.report(records), nil
}

// selectLister selects where the volumes are listed.
func (s *survey) selectLister() error {
	s.enumerated = true
	switch {
	case s.Driver != nil && s.Driver.ListsVolumes():
		s.lister = driverLister{s.Driver}
		if s.File != "" { // an error in it shows before the first list
			return ReadFile(s.File, func(Volume) {})
		}
	case s.File != "":
		s.lister = fileLister(s.File)
	case s.Driver != nil:
		s.enumerated = false
		s.refs.miss(fmt.Sprintf("driver %s has no capability LIST_VOLUMES, so its volumes are not known: list them with --volumes", s.driverName))
	default:
		return errors.New("neither a driver nor a file lists the volumes")
	}
	return nil
}

// firstPass lists all volumes and reads all references.
func (s *survey) firstPass(ctx context.Context) error {
	if s.lister != nil {
		err := s.lister.list(ctx, func() {
			s.first = firstList{attached: set{}, sources: set{}}
			s.listed = set{}
		}, func(volume Volume) {
			s.first.handles = append(s.first.handles, volume.Handle)
			s.listed.add(volume.Handle)
			s.first.sources.add(volume.Source)
			if volume.Attached {
				s.first.attached.add(volume.Handle)
			}
		})
		if err := s.missVolumes(ctx, err); err != nil {
			return err
		}
	}
	s.readClusters(ctx, func(cluster *Cluster, handle string, volume *v1.PersistentVolume) {
		if !s.listed.has(handle) {
			s.unlisted = append(s.unlisted, unlisted{cluster, volume.Name, handle, volume.UID})
		}
	})
	return cause(ctx)
}

// cause returns why the context ended, nil if it did not.
func cause(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// missVolumes records that a list of volumes is incomplete. Its error ends the audit.
func (s *survey) missVolumes(ctx context.Context, err error) error {
	var broken *fileError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &broken):
		return err
	}
	s.enumerated = false
	s.refs.miss(fmt.Sprintf("driver %s did not list all its volumes: %s", s.driverName, plain(err)))
	return nil
}

func (s *survey) readClusters(ctx context.Context, visit func(*Cluster, string, *v1.PersistentVolume)) {
	for _, cluster := range s.Clusters {
		(&reading{Cluster: cluster, refs: s.refs, visit: visit}).read(ctx)
	}
}

// secondPass waits, and then lists and reads everything again, unless nothing in the first
// pass needs a second look.
func (s *survey) secondPass(ctx context.Context) error {
	s.second = secondList{candidates: set{}, handles: set{}, sources: set{}}
	unknown := s.first.handles[:0]
	for _, handle := range s.first.handles {
		if _, recorded := s.refs.recorded[hash(handle)]; !recorded {
			s.second.candidates.add(handle)
			unknown = append(unknown, handle)
		}
	}
	s.anyRecorded = len(unknown) < len(s.first.handles)
	s.first.handles = unknown
	if err := s.readDetails(); err != nil {
		return err
	}
	if len(unknown) == 0 && len(s.unlisted) == 0 && len(s.refs.shared) == 0 {
		return nil
	}
	if s.enumerated {
		if err := s.settle(ctx); err != nil {
			return err
		}
		if err := s.listAgain(ctx); err != nil {
			return err
		}
	}
	s.readClusters(ctx, func(cluster *Cluster, handle string, volume *v1.PersistentVolume) {
		if s.refs.shared.has(handle) {
			s.names[handle] = append(s.names[handle], sharedRecord{SharedVolume{Cluster: cluster.Name, Name: volume.Name},
				volume.UID})
		}
	})
	s.readSnapshotSources(ctx)
	return cause(ctx)
}

func (s *survey) settle(ctx context.Context) error {
	timer := time.NewTimer(s.Settle)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// listAgain lists the volumes a second time. Only this list can show that the volume of a
// PersistentVolume is not listed: the first list began before it was read.
func (s *survey) listAgain(ctx context.Context) error {
	err := s.lister.list(ctx, func() {
		s.second = secondList{candidates: s.second.candidates, handles: set{}, sources: set{}}
	}, s.addAgain)
	return s.missVolumes(ctx, err)
}

func (s *survey) addAgain(volume Volume) {
	list := &s.second
	list.handles.add(volume.Handle)
	list.sources.add(volume.Source)
	recorded, found := s.refs.recorded[hash(volume.Handle)]
	switch {
	case found && volume.Name != "" && recorded.name == hash(volume.Name):
		list.sameNames++
	case found && volume.Name != "" && recorded.name != 0:
		list.otherNames++
	case !found:
		volume.Attached = volume.Attached || s.first.attached.has(volume.Handle)
		list.volumes = append(list.volumes, s.withDetails(volume))
	}
}
