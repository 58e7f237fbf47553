package leader

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/exeunt-io/exeunt/pkg/controller"
)

// store is an API server with one Lease, which versions it as etcd does. It can be restored from a backup.
type store struct {
	*testing.T
	client *fake.Clientset

	mu       sync.Mutex
	lease    *coordinationv1.Lease // nil if it does not exist
	revision int
	uids     int
	away     bool
	// lost: writes are executed, and their answers are lost.
	lost bool
	// reads and writes of the Lease that were answered.
	reads, writes int
	backup        *coordinationv1.Lease
	backedUpAt    int
}

func newStore(t *testing.T, lease *coordinationv1.Lease) *store {
	s := &store{T: t, client: fake.NewClientset(), revision: 1000}
	if lease != nil {
		s.set(lease)
	}
	s.client.PrependReactor("*", "leases", s.react)
	return s
}

var leaseResource = coordinationv1.Resource("leases")

func (s *store) react(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return true, nil, errors.New("connection refused")
	}
	switch action := action.(type) {
	case clienttesting.UpdateAction: // and of a creation
		sent := action.GetObject().(*coordinationv1.Lease)
		switch creates := action.GetVerb() == "create"; {
		case creates && s.lease != nil:
			return true, nil, apierrors.NewAlreadyExists(leaseResource, "program")
		case !creates && s.lease == nil:
			return true, nil, apierrors.NewNotFound(leaseResource, "program")
		case !creates && (sent.ResourceVersion != s.lease.ResourceVersion || sent.UID != s.lease.UID):
			return true, nil, apierrors.NewConflict(leaseResource, "program", errors.New("the object has been modified"))
		}
		s.writes++
		s.set(sent)
		if s.lost {
			return true, nil, context.DeadlineExceeded
		}
		return true, s.lease.DeepCopy(), nil
	case clienttesting.GetAction:
		if s.lease == nil {
			return true, nil, apierrors.NewNotFound(leaseResource, "program")
		}
		s.reads++
		return true, s.lease.DeepCopy(), nil
	}
	return false, nil, nil
}

// set stores the Lease as the next version.
func (s *store) set(lease *coordinationv1.Lease) {
	s.revision++
	s.lease = lease.DeepCopy()
	s.lease.ResourceVersion = strconv.Itoa(s.revision)
	if s.lease.UID == "" {
		s.uids++
		s.lease.UID = types.UID(strconv.Itoa(s.uids))
	}
}

// do changes the store.
func (s *store) do(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *store) save() { s.backup, s.backedUpAt = s.lease.DeepCopy(), s.revision }

// restore brings the backup back, with the same revision or with a raised one.
func (s *store) restore(raised bool) {
	s.lease, s.revision = s.backup, s.backedUpAt
	if raised {
		s.revision += 1_000_000
	}
}

func (s *store) count() (reads, writes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads, s.writes
}

// process is one that stands by or leads.
type process struct {
	connection *Connection
	term       controller.Term // set once it leads
	led        chan struct{}
	ended      chan error
	stop       context.CancelFunc
}

// start starts a process whose identity is that of a pod.
func (s *store) start(pod string) *process {
	ctx, stop := context.WithCancel(s.Context())
	p := &process{connection: &Connection{}, led: make(chan struct{}), ended: make(chan error, 1), stop: stop}
	renewing, stopRenewing := context.WithCancel(ctx)
	term := newTerm(pod, lasting.LeaseDuration.Duration, lasting.RetryPeriod.Duration, p.connection)
	e := &election{Election: Election{LeaderElectionConfiguration: lasting, Connection: p.connection}, client: s.client,
		term:     term,
		watchdog: leaderelection.NewLeaderHealthzAdaptor(time.Minute), released: make(chan struct{}), renewing: renewing,
		stopRenewing: stopRenewing}
	go func() {
		defer stopRenewing()
		p.ended <- e.lead(ctx, func(leading context.Context) error {
			p.term = e
			close(p.led)
			<-leading.Done()
			return nil
		})
	}()
	return p
}

// end returns how the process ended.
func (s *store) end(p *process) error {
	s.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(5 * time.Minute):
		s.Error("the process goes on")
		p.stop()
		return <-p.ended
	}
}

// write is what the guard of a write says.
func (p *process) write() error {
	return p.term.(*election).confirm(context.Background())
}
