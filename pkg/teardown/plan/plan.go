package plan

import (
	"context"
	"net"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/teardown"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// Options are what is asked.
type Options struct {
	Reader   *cluster.Reader
	Commands cluster.Commands
	// Server is the URL of the API server.
	Server string
	// Preserve are the objects that a person wants to keep: the plan is that of a cluster where they have the label.
	Preserve []Target
	// Last are the namespaces that go last.
	Last []string
	// Others are other clusters, whose volumes are kept (#05).
	Others []Other
	// Lookup returns the addresses of a host name, by the resolver of this machine if it is nil.
	Lookup func(ctx context.Context, host string) ([]string, error)
}

// Other is another cluster.
type Other struct {
	Name   string
	Reader *cluster.Reader
}

// Target names an object to keep.
type Target struct {
	// Kind is a kind of the API, such as PersistentVolume.
	Kind, Namespace, Name string
}

// Plan is what a teardown would do.
type Plan struct {
	teardown.Document

	// Shared are the handles of other clusters, APIServer the addresses of the API server, for the runner.
	Shared, APIServer map[string]bool
	// Alive is nil if there is none.
	Alive *alive.Alive
}

// Refuses reports whether something refuses the teardown.
func (p *Plan) Refuses() bool {
	return slices.ContainsFunc(p.Problems, func(problem teardown.Problem) bool { return problem.Refuses })
}

// survey is one look at a cluster.
type survey struct {
	Options
	plan      *Plan
	inventory *inventory.Inventory
	// duties are what controllers have to delete, onNodes the kept volumes on disks of nodes.
	duties  []inventory.Counted
	onNodes []string
	// wanted are the targets to preserve, found those that exist.
	wanted, found map[Target]bool
	// ready is the number of nodes that are ready, platforms are those seen, groups the resource groups of machines.
	ready     int
	platforms map[string]bool
	groups    map[string]bool
	// names counts the objects with names for external-dns, clusterTag is what the EBS driver tags disks with.
	names      int
	clusterTag string
	hostNames  map[string]bool
	// balanced: something outside has an address that leads into the cluster.
	balanced bool
	// installed: the API server serves Alive. same are the other clusters that are this one.
	installed bool
	same      []string
}

// Read reads the cluster.
func Read(ctx context.Context, options Options) *Plan {
	s := &survey{Options: options, plan: &Plan{Shared: map[string]bool{}, APIServer: map[string]bool{}},
		wanted: map[Target]bool{}, found: map[Target]bool{}, platforms: map[string]bool{}, groups: map[string]bool{},
		hostNames: map[string]bool{}}
	for _, target := range options.Preserve {
		s.wanted[target] = true
	}
	if s.Lookup == nil {
		s.Lookup = net.DefaultResolver.LookupHost
	}
	s.readCluster(ctx)
	s.readOthers(ctx)
	s.inventory = inventory.New(inventory.Options{Shared: s.plan.Shared, APIServer: s.plan.APIServer, Last: options.Last})
	counts := options.Reader.Scope() // what it could not read refuses
	s.fill(ctx, counts)
	s.readAlive(ctx, counts)
	s.resolve(ctx, counts)
	s.takeStock(options.Reader.Now())
	s.judge(ctx, counts.Incomplete())
	s.plan.Incomplete = append([]string{}, options.Reader.Incomplete()...)
	for _, other := range options.Others {
		for _, sentence := range other.Reader.Incomplete() {
			s.plan.Incomplete = append(s.plan.Incomplete, other.Name+": "+sentence)
		}
	}
	return s.plan
}

// takeStock takes from the inventory what the rest needs, and drops it: it is as large as the cluster.
func (s *survey) takeStock(now time.Time) {
	s.plan.Items = s.inventory.Items(now)
	s.plan.Count()
	s.duties, s.onNodes = s.inventory.Duties(now), s.inventory.OnNodes(now)
	s.inventory = nil
}

// judge adds the problems: what should be known first, then what refuses.
func (s *survey) judge(ctx context.Context, unread []string) {
	s.plan.Problems = []teardown.Problem{}
	s.addWarnings()
	s.addUncovered(ctx)
	s.addWorkers(ctx)
	s.addRefusals(ctx, unread)
	slices.SortStableFunc(s.plan.Problems, func(a, b teardown.Problem) int { return order(a.Refuses) - order(b.Refuses) })
}

func order(refuses bool) int {
	if refuses {
		return 1
	}
	return 0
}

func (s *survey) problem(problem teardown.Problem) {
	s.plan.Problems = append(s.plan.Problems, problem)
}

// readCluster reads ID, version and nodes of the cluster. Without the right to read namespace kube-system it fails.
func (s *survey) readCluster(ctx context.Context) {
	s.plan.Cluster.Server = s.Server
	if system, presence := cluster.Get(ctx, s.Reader, cluster.Namespaces, "", metav1.NamespaceSystem); presence == cluster.Present {
		s.plan.Cluster.ID = string(system.UID)
	}
	version, err := s.Reader.Version(ctx)
	if err != nil {
		s.Reader.Note("%v", err)
	}
	s.plan.Cluster.Version = version
}

// readAlive reads phase and participants, if the kind is there.
func (s *survey) readAlive(ctx context.Context, r *cluster.Reader) {
	served, _ := r.ServedIn(alive.Group)
	if len(served) == 0 {
		return
	}
	s.installed = true
	ref, known := r.Find(alive.GroupVersion.String(), alive.Kind, "", alive.Name)
	if !known {
		r.Note("the kind %s is served, but not in the version %s", alive.Kind, alive.GroupVersion)
		return
	}
	object, presence, _ := r.Live(ctx, ref)
	if presence != cluster.Present {
		return
	}
	read, err := alive.FromUnstructured(object)
	if err != nil {
		r.Note("%v", err)
		return
	}
	s.plan.Alive, s.plan.Phase, s.plan.Reason = read, teardown.Phase(read.Status.Phase), teardown.Reason(read.Status.Reason)
	if read.Status.StartedAt != nil {
		s.plan.Started = &read.Status.StartedAt.Time
	}
	if deadline := read.Deadline(); !deadline.IsZero() {
		s.plan.Deadline = &deadline
	}
	var participants []inventory.Participant
	for _, p := range alive.ParticipantsOf(object) {
		participants = append(participants, inventory.Participant{Finalizer: p.Finalizer, Namespace: p.Namespace, Text: p.Text})
	}
	s.inventory.SetParticipants(participants)
}

// readOthers reads the disks of other clusters.
func (s *survey) readOthers(ctx context.Context) {
	for _, other := range s.Others {
		// Who may not read the ID of the other cluster may still name its disks.
		system, _ := cluster.Get(ctx, other.Reader.Apart(), cluster.Namespaces, "", metav1.NamespaceSystem)
		if system != nil && string(system.UID) == s.plan.Cluster.ID {
			s.same = append(s.same, other.Name)
		}
		cluster.Each(ctx, other.Reader, cluster.PersistentVolumes, cluster.Selection{}, func(page []v1.PersistentVolume) {
			for i := range page {
				for _, handle := range inventory.Handles(&page[i]) {
					s.plan.Shared[handle] = true
				}
			}
		})
	}
}
