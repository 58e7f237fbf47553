package status

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/reclaim/external"
	"github.com/exeunt-io/exeunt/pkg/storage"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
	"github.com/exeunt-io/exeunt/pkg/why/holder"
)

// Options are what the user wants to know.
type Options struct {
	Reader   *cluster.Reader
	Commands cluster.Commands
	// BeforeSwitch adds what a switch to Exeunt deletes, and which rights are missing.
	BeforeSwitch bool
	// Accounts are further service accounts of provisioners, as NAMESPACE/NAME.
	Accounts []string
}

// survey is one look at a cluster.
type survey struct {
	Options
	finder holder.Finder
	report Report

	volumes map[types.UID]volumeFacts
	claims  map[string]*corev1.PersistentVolumeClaim
	writes  map[types.UID]phaseWrite
	leases  []coordinationv1.Lease
	// leasesAt is when the Leases were read, by the clock of the API server.
	leasesAt time.Time
	seen     struct{ volumes, claims bool }
	// journals are the Leases of journals by their owner.
	journals map[journal.Journal]*Journal
}

// volumeFacts is what is remembered of a volume.
type volumeFacts struct {
	name, driver, creator string
	claim                 *corev1.ObjectReference
	created               time.Time
	phase                 corev1.PersistentVolumePhase
	state                 external.State
	reclaimer             reclaimer
}

// examples is how many volumes a report names per driver and kind of fault.
const examples = 5

// Read reads the cluster and returns the report.
func Read(ctx context.Context, options Options) Report {
	s := &survey{
		Options: options, finder: holder.Finder{Reader: options.Reader, Commands: options.Commands},
		volumes: map[types.UID]volumeFacts{}, claims: map[string]*corev1.PersistentVolumeClaim{},
		writes:   map[types.UID]phaseWrite{},
		journals: map[journal.Journal]*Journal{},
	}
	s.readClaims(ctx)
	s.readVolumes(ctx)
	s.readLeases(ctx)
	s.readPolicy(ctx)
	s.addDrivers(ctx)
	s.addLeases()
	s.addLoops(ctx)
	s.addNodes(ctx)
	s.addTeardown(ctx)
	if options.BeforeSwitch {
		s.addBeforeSwitch(ctx)
	}
	s.report.Incomplete = append([]string{}, options.Reader.Incomplete()...)
	s.report.Findings = append([]string{}, s.report.Findings...)
	s.report.conclude()
	return s.report
}

// readVolumes remembers of each volume what the report needs.
func (s *survey) readVolumes(ctx context.Context) {
	library := migration.New()
	s.seen.volumes = cluster.Each(ctx, s.Reader, cluster.PersistentVolumes, cluster.Selection{},
		func(page []corev1.PersistentVolume) {
			for i := range page {
				volume := &page[i]
				driver := futureDriver(volume, library)
				s.volumes[volume.UID] = volumeFacts{
					name: volume.Name, driver: driver, reclaimer: reclaimerOf(volume, driver), creator: creatorOf(volume),
					claim:   volume.Spec.ClaimRef,
					created: volume.CreationTimestamp.Time, phase: volume.Status.Phase, state: stateOf(volume, s.claimOf(volume)),
				}
				if write, has := phaseWriteOf(volume.ManagedFields); has {
					s.writes[volume.UID] = write
				}
			}
		})
}

// readClaims remembers of each claim what tells its relation to a volume.
func (s *survey) readClaims(ctx context.Context) {
	s.seen.claims = cluster.Each(ctx, s.Reader, cluster.PersistentVolumeClaims, cluster.Selection{},
		func(page []corev1.PersistentVolumeClaim) {
			for i := range page {
				claim := &page[i]
				if write, has := phaseWriteOf(claim.ManagedFields); has {
					s.writes[claim.UID] = write
				}
				small := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: claim.Spec.VolumeName}}
				small.UID = claim.UID
				if value, completed := claim.Annotations[storage.AnnBindCompleted]; completed {
					small.Annotations = map[string]string{storage.AnnBindCompleted: value}
				}
				s.claims[claim.Namespace+"/"+claim.Name] = small
			}
		})
}

// claimOf returns the relation of the volume to its claim; unread if claims were not seen.
func (s *survey) claimOf(volume *corev1.PersistentVolume) storage.ClaimRelation {
	ref := volume.Spec.ClaimRef
	if ref == nil {
		return storage.ClaimNone
	}
	claim, has := s.claims[ref.Namespace+"/"+ref.Name]
	if !has && !s.seen.claims {
		return storage.UnreadClaim(volume)
	}
	return storage.ClaimOf(volume, claim)
}

// creatorOf returns the program that created the volume, by managedFields: who wrote the
// source of the volume.
func creatorOf(volume *corev1.PersistentVolume) string {
	for _, entry := range volume.ManagedFields {
		if entry.Subresource == "" && entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(),
			[]byte(`"f:csi"`)) {
			return entry.Manager
		}
	}
	return ""
}

// sortedVolumes returns the volumes by name.
func (s *survey) sortedVolumes() []volumeFacts {
	return slices.SortedFunc(maps.Values(s.volumes), func(a, b volumeFacts) int { return strings.Compare(a.name, b.name) })
}
