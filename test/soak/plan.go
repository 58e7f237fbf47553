package main

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/test/faultproxy"
)

// Replicas is the number of processes of each program: a leader and a standby.
const Replicas = 2

// ActionKind is a kind of disturbance.
type ActionKind string

// The kinds of disturbances.
const (
	// Kill ends one process with SIGKILL; KillLeader that of the leader.
	Kill       ActionKind = "kill"
	KillLeader ActionKind = "kill leader"
	// Freeze stops one process with SIGSTOP for a time; FreezeLeader that of the leader.
	Freeze       ActionKind = "freeze"
	FreezeLeader ActionKind = "freeze leader"
	// RestartAPI kills etcd and kube-apiserver, and starts them on the same data.
	RestartAPI ActionKind = "restart API server"
	// Snapshot copies the data of etcd, Restore replaces the data with the copy.
	Snapshot ActionKind = "snapshot etcd"
	Restore  ActionKind = "restore etcd"
	// ChangePhase begins a phase, with or without faults.
	ChangePhase ActionKind = "change phase"
)

// Revision is that of etcd after a restore.
type Revision string

// The revisions.
const (
	// SameRevision is that of the copy, so that revisions are used twice.
	SameRevision Revision = "same revision"
	// RaisedRevision is higher than any before, and watches from earlier ones end: the way that upstream recommends.
	RaisedRevision Revision = "raised revision"
)

// Action is one disturbance.
type Action struct {
	// At is the time since the start of the run.
	At   time.Duration
	Kind ActionKind
	// Program and Replica name the process. Who leads is known only when the action begins: KillLeader and
	// FreezeLeader have no Replica.
	Program Program
	Replica int
	// For is how long a process is frozen.
	For time.Duration
	// Phase is what fails from now on.
	Phase Phase
	// Revision is that of a restore.
	Revision Revision
	// Running: our programs run on during the restore, and notice it themselves. Otherwise they are stopped before.
	Running bool
}

// Program is one of the programs.
type Program int

// The programs.
const (
	PVController Program = iota
	Provisioner
	Collector
	programCount = 3
)

// String returns the name of the program.
func (p Program) String() string {
	return [programCount]string{"pv-controller", "provisioner", "garbage-collector"}[p]
}

// Phase is what fails for a while.
type Phase struct {
	// Faulty reports whether anything fails.
	Faulty bool
	// Faults are those of the CSI driver.
	Faults []csimock.Fault
	// Rates are those of the proxies before the API server.
	Rates faultproxy.Rates
}

const (
	// meanKill, meanFreeze and meanAPI are the mean times between two actions of a kind.
	meanKill   = 9 * time.Second
	meanFreeze = 22 * time.Second
	meanAPI    = 55 * time.Second
	// faultlessStart is the time before the first disturbance, in which users create the first volumes.
	faultlessStart = 8 * time.Second
	// lastAction is how long before the end of the run the last action begins.
	lastAction = 5 * time.Second
)

// NewPlan returns the actions of a run, sorted by time. The same seed and duration return the same actions.
func NewPlan(seed uint64, duration time.Duration) []Action {
	random := rand.New(rand.NewPCG(seed, 1))
	collector := rand.New(rand.NewPCG(seed, 3)) // so that the collector changes nothing for the other programs
	plan := slices.Concat(
		phases(random, duration),
		repeated(random, duration, meanKill, kill),
		repeated(random, duration, meanFreeze, freeze),
		repeated(random, duration, meanAPI, func(*rand.Rand) Action { return Action{Kind: RestartAPI} }),
		restores(random, duration),
		repeated(collector, duration, 2*meanKill, of(Collector, kill)),
		repeated(collector, duration, 2*meanFreeze, of(Collector, freeze)),
	)
	slices.SortStableFunc(plan, func(a, b Action) int { return cmp.Compare(a.At, b.At) })
	return plan
}

// repeated returns actions with exponentially distributed times between them.
func repeated(random *rand.Rand, duration, mean time.Duration, draw func(*rand.Rand) Action) []Action {
	var actions []Action
	for at := faultlessStart; ; {
		at += time.Duration(random.ExpFloat64() * float64(mean))
		if at > duration-lastAction {
			return actions
		}
		action := draw(random)
		action.At = at
		actions = append(actions, action)
	}
}

// kill draws a process to kill; two of three are leaders.
func kill(random *rand.Rand) Action {
	action := Action{Kind: Kill, Program: Program(random.IntN(2)), Replica: random.IntN(Replicas)}
	if random.IntN(3) > 0 {
		action.Kind, action.Replica = KillLeader, 0
	}
	return action
}

// of draws the action for the program.
func of(program Program, draw func(*rand.Rand) Action) func(*rand.Rand) Action {
	return func(random *rand.Rand) Action {
		action := draw(random)
		action.Program = program
		return action
	}
}

// freeze draws a process to freeze, for less or for longer than its lease.
func freeze(random *rand.Rand) Action {
	action := Action{
		Kind: Freeze, Program: Program(random.IntN(2)), Replica: random.IntN(Replicas),
		For: time.Second + time.Duration(random.Int64N(int64(2*leaseDuration))),
	}
	if random.IntN(3) > 0 {
		action.Kind, action.Replica = FreezeLeader, 0
	}
	return action
}

// restores draws one snapshot for each 20 minutes, one for shorter runs of at least two minutes, and its restore 5 to
// 35 seconds later.
func restores(random *rand.Rand, duration time.Duration) []Action {
	if duration < 2*time.Minute {
		return nil
	}
	var actions []Action
	count := max(1, int(duration/(20*time.Minute)))
	part := duration / time.Duration(count)
	for i := range count {
		start := time.Duration(i) * part
		snapshot := start + part/3 + time.Duration(random.Int64N(int64(part/6)))
		age := 5*time.Second + time.Duration(random.Int64N(int64(30*time.Second)))
		revision := []Revision{SameRevision, RaisedRevision}[random.IntN(2)]
		actions = append(actions, Action{At: snapshot, Kind: Snapshot},
			Action{At: snapshot + age, Kind: Restore, Revision: revision, Running: random.IntN(3) > 0})
	}
	return actions
}

// phases draws the phases of the run. The first one has no faults.
func phases(random *rand.Rand, duration time.Duration) []Action {
	actions := []Action{{Kind: ChangePhase}}
	faulty := true
	for at := faultlessStart; at < duration-lastAction; faulty = !faulty {
		phase := Phase{Faulty: faulty}
		length := 6*time.Second + time.Duration(random.Int64N(int64(8*time.Second)))
		if faulty {
			phase.Faults, phase.Rates = driverFaults(random), ratesOf(random)
			length = 12*time.Second + time.Duration(random.Int64N(int64(18*time.Second)))
		}
		actions = append(actions, Action{At: at, Kind: ChangePhase, Phase: phase})
		at += length
	}
	return actions
}

// driverFaults draws the faults of the driver: some of each method, each on every n-th call.
func driverFaults(random *rand.Rand) []csimock.Fault {
	var faults []csimock.Fault
	for _, method := range []string{"CreateVolume", "DeleteVolume"} {
		all := faultsOf(method)
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, fault := range all[:4+random.IntN(len(all)-3)] {
			fault.Method, fault.Every = method, 7+random.IntN(30)
			faults = append(faults, fault)
		}
	}
	return faults
}

// ratesOf draws the rates of the proxies: most kinds, each with a rate of its own. The leases
// of leader election have fewer faults, or no program would ever lead.
func ratesOf(random *rand.Rand) faultproxy.Rates {
	rates := faultproxy.Rates{Faults: map[faultproxy.Kind]float64{}, Leases: map[faultproxy.Kind]float64{}}
	for _, kind := range faultproxy.Kinds() {
		if random.IntN(10) < 3 {
			continue
		}
		rate := 0.002 + 0.02*random.Float64()
		switch kind {
		case faultproxy.Disconnect, faultproxy.Outage:
			rate /= 20 // each is felt by all requests of the program
		case faultproxy.StaleList, faultproxy.TooLargeVersion, faultproxy.Gone:
			rate *= 15 // only lists and new watches meet it, which are few
		default:
		}
		rates.Faults[kind], rates.Leases[kind] = rate, rate/4
	}
	return rates
}

// faultsOf returns all faults of a method. After means that the call has its effect, and the
// answer is lost.
func faultsOf(method string) []csimock.Fault {
	faults := []csimock.Fault{
		{Code: codes.Unavailable},
		{Code: codes.Unavailable, After: true},
		{Code: codes.Aborted},
		{Code: codes.DeadlineExceeded, After: true},
		{Code: codes.Internal},
		{Code: codes.Internal, After: true},
		{Disconnect: true, After: true},
		{Hang: true},
		{Hang: true, After: true},
		{Latency: 300 * time.Millisecond},
		{Latency: 1500 * time.Millisecond},
	}
	if method == "CreateVolume" {
		faults = append(faults, csimock.Fault{Code: codes.ResourceExhausted}, csimock.Fault{Code: codes.Unknown, After: true},
			csimock.Fault{Response: csimock.NoID}, csimock.Fault{Response: csimock.TooSmall})
	} else {
		faults = append(faults, csimock.Fault{Code: codes.FailedPrecondition})
	}
	return faults
}
