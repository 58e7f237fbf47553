package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/exeunt-io/exeunt/pkg/audit/verdict"
)

// Report is the result of an audit.
type Report struct {
	Orphans []Orphan `json:"orphans"`
	Ghosts  []Ghost  `json:"ghosts"`
	Shared  []Shared `json:"shared"`
	// Enumerated: the volumes of the storage system were all listed.
	Enumerated bool    `json:"enumerated"`
	Doubtful   []Doubt `json:"doubtful"`
	// Incomplete says what could not be read, and how that can be changed.
	Incomplete []string `json:"incomplete"`

	// Driver is the name of the driver, Clusters are the names of the clusters that were read.
	Driver   string   `json:"-"`
	Clusters []string `json:"-"`
	// Recorded is the number of volumes that PersistentVolumes of the driver refer to, listed or not.
	Recorded int `json:"-"`
	// NoneListed: PersistentVolumes of the driver exist, but none of the listed volumes is theirs.
	NoneListed bool `json:"-"`

	// volumes are the orphans by handle, with all that is known of them, for their adoption.
	volumes map[string]Volume
}

// Orphan is a volume that nothing refers to.
type Orphan struct {
	Handle string `json:"handle"`
	// Name is the requested name of the volume, Age how long it is known, Size its size as a
	// quantity; "" if unknown.
	Name string `json:"name"`
	Age  string `json:"age"`
	Size string `json:"size"`
}

// Ghost is a PersistentVolume whose volume does not exist.
type Ghost struct {
	Handle string `json:"handle"`
	// Name is the name of the PersistentVolume.
	Name    string `json:"name"`
	Cluster string `json:"cluster"`
}

// Shared is a handle that several PersistentVolumes have.
type Shared struct {
	Handle  string         `json:"handle"`
	Volumes []SharedVolume `json:"volumes"`
}

// SharedVolume is one PersistentVolume of a shared handle.
type SharedVolume struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
}

// Doubt is a volume that no PersistentVolume refers to, but that may be needed.
type Doubt struct {
	Handle string         `json:"handle"`
	Reason verdict.Reason `json:"reason"`
}

// report decides about every volume.
func (s *survey) report(ghosts []Ghost) *Report {
	report := &Report{
		Orphans: []Orphan{}, Ghosts: append([]Ghost{}, ghosts...), Shared: s.sharedHandles(), Enumerated: s.enumerated,
		Doubtful:   []Doubt{},
		Incomplete: append([]string{}, s.refs.incomplete...),
		Driver:     s.driverName, Recorded: s.refs.volumes, NoneListed: s.refs.volumes > 0 && !s.anyRecorded,
		volumes: map[string]Volume{},
	}
	for _, cluster := range s.Clusters {
		report.Clusters = append(report.Clusters, cluster.Name)
	}
	s.findAttached()
	for _, volume := range s.second.volumes {
		report.add(volume, verdict.Decide(s.state(volume, s.second.candidates.has(volume.Handle))))
	}
	for _, handle := range s.first.handles { // those that only the first list has
		if !s.second.handles.has(handle) {
			volume := Volume{Handle: handle, Name: verdict.Name(handle, nil), Attached: s.first.attached.has(handle)}
			report.add(volume, verdict.Decide(s.state(volume, false)))
		}
	}
	slices.SortFunc(report.Orphans, func(a, b Orphan) int { return cmp.Compare(a.Handle, b.Handle) })
	slices.SortFunc(report.Doubtful, func(a, b Doubt) int { return cmp.Compare(a.Handle, b.Handle) })
	return report
}

// add adds the volume to the list of its class. Known volumes are in no list.
func (r *Report) add(volume Volume, decided verdict.Verdict) {
	switch decided.Class {
	case verdict.Orphan:
		orphan := Orphan{Handle: volume.Handle, Name: volume.Name, Size: sizeText(volume.Size), Age: volume.age(time.Now())}
		r.Orphans = append(r.Orphans, orphan)
		r.volumes[volume.Handle] = volume
	case verdict.Doubtful:
		r.Doubtful = append(r.Doubtful, Doubt{Handle: volume.Handle, Reason: decided.Reason})
	case verdict.Known:
	}
}

// findAttached removes the volumes whose name is listed from those that a VolumeAttachment
// names and nobody knows.
func (s *survey) findAttached() {
	for _, volume := range s.second.volumes {
		for _, name := range []string{volume.Name, volume.driverName} {
			delete(s.refs.unknownAttached, hash(name))
		}
	}
}

// state returns the state of one volume, from the references of both passes.
func (s *survey) state(volume Volume, twice bool) verdict.State {
	refs, handle := s.refs, volume.Handle
	_, recorded := refs.recorded[hash(handle)]
	// A driver that lists names of its own says by a name for which claim it created the volume as little as one that
	// lists none: the volume may be that of any claim that still waits, and must not be called an orphan.
	unnamed := volume.Name == "" || s.second.otherNames > s.second.sameNames
	return verdict.State{
		Recorded:       recorded,
		Attached:       volume.Attached || refs.attaches(volume, unnamed),
		SnapshotSource: refs.snapshots.has(handle),
		CloneSource:    refs.clones.has(handle) || s.first.sources.has(handle) || s.second.sources.has(handle),
		Inline:         refs.inline.has(handle) || verdict.IsKubeletHandle(handle),
		HandleAlike: refs.alike.has(verdict.Spelling(handle)) && !refs.entryTexts.has(handle) &&
			!refs.unresolvedTexts.has(handle),
		EntryUnresolved: refs.leavesUnresolved(volume, unnamed),
		InFlight:        refs.creates(volume, unnamed),
		Enumerated:      s.enumerated,
		Complete:        len(refs.incomplete) == 0,
		ListedTwice:     twice,
	}
}

// sharedHandles returns the handles that two PersistentVolumes have at the same time.
func (s *survey) sharedHandles() []Shared {
	all := []Shared{}
	for handle, records := range s.names {
		slices.SortFunc(records, func(a, b sharedRecord) int { return cmp.Compare(a.uid, b.uid) })
		records = slices.CompactFunc(records, func(a,
			b sharedRecord) bool {
			return a.uid == b.uid
		}) // one cluster given twice
		if len(records) < 2 {
			continue
		}
		shared := Shared{Handle: handle}
		for _, record := range records {
			shared.Volumes = append(shared.Volumes, record.SharedVolume)
		}
		slices.SortFunc(shared.Volumes, func(a, b SharedVolume) int {
			return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name))
		})
		all = append(all, shared)
	}
	slices.SortFunc(all, func(a, b Shared) int { return cmp.Compare(a.Handle, b.Handle) })
	return all
}

// IsComplete reports whether everything was read: the volumes of the storage system, and what may
// refer to them in all clusters.
func (r *Report) IsComplete() bool { return r.Enumerated && len(r.Incomplete) == 0 }

// Question returns what to ask before anything else, or "": more orphans than recorded
// volumes, or none of the recorded volumes, look like a storage system that another
// cluster owns, or like a driver that was given another one.
func (r *Report) Question() string {
	switch {
	case len(r.Orphans) > 0 && r.NoneListed:
		return fmt.Sprintf("Does this cluster own the storage system? %d volumes are orphans, and the list of volumes has none of the %d that are recorded in %s.",
			len(r.Orphans), r.Recorded, strings.Join(r.Clusters, ", "))
	case len(r.Ghosts) > 0 && r.NoneListed && (r.Enumerated || len(r.Ghosts) == r.Recorded):
		return fmt.Sprintf("Does the driver talk to the storage system of this cluster? It knows nothing of %d of the %d volumes that are recorded in %s.",
			len(r.Ghosts), r.Recorded, strings.Join(r.Clusters, ", "))
	case len(r.Orphans) <= r.Recorded:
		return ""
	}
	return fmt.Sprintf("Does this cluster own the storage system? %d volumes are orphans, and only %d are recorded in %s.",
		len(r.Orphans), r.Recorded, strings.Join(r.Clusters, ", "))
}

func sizeText(bytes int64) string {
	if bytes <= 0 {
		return ""
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}

// age returns the age as a text, "" if unknown.
func (v Volume) age(now time.Time) string {
	if v.Age != "" || v.Created.IsZero() {
		return v.Age
	}
	return duration.HumanDuration(now.Sub(v.Created))
}
