package load

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/test/bench/measure"
	"github.com/exeunt-io/exeunt/test/bench/plan"
	"github.com/exeunt-io/exeunt/test/faultproxy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// ProfilePath is where all processes serve CPU profiles.
const ProfilePath = "/debug/pprof/profile"

// Programs are the processes of one turn.
type Programs struct {
	// Driver is nil for the ceiling.
	Driver *sandbox.Driver
	// LoopsAddress and SidecarAddress are those of the API server for the two programs, behind
	// proxies if there is a network delay.
	LoopsAddress, SidecarAddress string
	// Profiles has the address of each process that serves CPU profiles, by its name.
	Profiles map[string]string

	cluster *Cluster
	turn    plan.Turn
	mu      sync.Mutex
	all     map[string][]*sandbox.Process
	drivers []*sandbox.Driver
	proxies []*faultproxy.DelayProxy
}

// NewPrograms prepares the programs of a turn. Nothing but driver and proxies runs yet.
func (c *Cluster) NewPrograms(ctx context.Context, turn plan.Turn) (p *Programs, err error) {
	p = &Programs{cluster: c, turn: turn, Profiles: map[string]string{},
		all: map[string][]*sandbox.Process{measure.Server: {c.Plane.Process}, measure.Etcd: {c.Plane.Etcd}}}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Stop(context.WithoutCancel(ctx)))
		}
	}()
	for _, address := range []*string{&p.LoopsAddress, &p.SidecarAddress} {
		if *address, err = p.openProxy(); err != nil {
			return p, err
		}
	}
	if turn.Side == plan.Ceiling || turn.Scenario.Garbage() {
		return p, nil
	}
	p.Driver, err = p.startDriver(ctx, csimock.DefaultName)
	return p, err
}

// openProxy returns the address of the API server for a program.
func (p *Programs) openProxy() (string, error) {
	server, err := url.Parse(p.cluster.Plane.URL)
	if err != nil {
		return "", fmt.Errorf("parse address of the API server: %w", err)
	}
	if p.turn.Scenario.NetworkDelay == 0 {
		return server.Host, nil
	}
	proxy, err := faultproxy.StartDelay(server.Host, p.turn.Scenario.NetworkDelay)
	if err != nil {
		return "", err
	}
	p.proxies = append(p.proxies, proxy)
	return proxy.Address(), nil
}

// startDriver starts a driver that keeps its volumes in memory, with a new call log.
func (p *Programs) startDriver(ctx context.Context, name string) (*sandbox.Driver, error) {
	p.cluster.serial++
	dir := filepath.Join(p.cluster.dir, fmt.Sprintf("driver-%d", p.cluster.serial))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of the driver: %w", err)
	}
	args := []string{"--state-file=", "--capacity=1Pi"} // no scenario fills the pool
	if faults := faultsOf(p.turn.Scenario); faults != "" {
		file := filepath.Join(dir, "faults.yaml")
		if err := os.WriteFile(file, []byte(faults), 0o600); err != nil {
			return nil, fmt.Errorf("write faults of the driver: %w", err)
		}
		args = append(args, "--faults="+file)
	}
	driver, err := sandbox.StartDriver(ctx, sandbox.DriverConfig{Binaries: p.cluster.config.Binaries, Dir: dir, Name: name,
		Args: args})
	if err != nil {
		return nil, err
	}
	p.drivers = append(p.drivers, driver)
	p.note(measure.Driver, driver.Process)
	return driver, nil
}

// note remembers a process.
func (p *Programs) note(name string, process *sandbox.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[name] = append(p.all[name], process)
}

// faultsOf returns the faults of the driver, "" for none.
func faultsOf(s plan.Scenario) string {
	switch {
	case s.Kind == plan.Failing:
		return "[{method: DeleteVolume, code: Internal}]"
	case s.DriverLatency > 0:
		return fmt.Sprintf("[{method: CreateVolume, latency: %s}, {method: DeleteVolume, latency: %[1]s}]", s.DriverLatency)
	}
	return ""
}

// Start starts the programs of the side. The ceiling has none.
func (p *Programs) Start(ctx context.Context) error {
	switch {
	case p.turn.Side == plan.Ceiling:
		return nil
	case p.turn.Scenario.Garbage():
		return p.startCollector(ctx)
	}
	return p.startStorage(ctx)
}

// startStorage starts pv-controller and provisioner, or upstream's.
func (p *Programs) startStorage(ctx context.Context) error {
	if err := p.StartReplica(ctx, measure.Loops); err != nil {
		return err
	}
	if err := p.startSidecar(ctx, measure.Sidecar, p.Driver); err != nil {
		return err
	}
	if p.turn.Scenario.Kind != plan.Drivers {
		return nil
	}
	return p.startOthers(ctx)
}

// StartReplica starts a pv-controller, or upstream's loops. The name is that of its log.
func (p *Programs) StartReplica(ctx context.Context, name string) error {
	loops := sandbox.PVControllerAccount.Name()
	if p.turn.Side == plan.Upstream {
		loops = upstreamLoops
	}
	controller, err := p.controller(ctx, name, loops, p.LoopsAddress)
	if err != nil {
		return err
	}
	if p.turn.Scenario.Kind == plan.HandOver {
		controller.Args = append(controller.Args, "--leader-elect=true")
	}
	process, err := p.cluster.Plane.StartLoops(ctx, p.turn.Side == plan.Upstream, controller)
	if err != nil {
		return err
	}
	p.note(measure.Loops, process)
	return nil
}

// EndLeader ends the replica that was started first of those that run, and forgets it.
func (p *Programs) EndLeader(end func(leader *sandbox.Process) error) error {
	p.mu.Lock()
	replicas := p.all[measure.Loops]
	p.all[measure.Loops] = replicas[1:]
	p.mu.Unlock()
	return end(replicas[0])
}

// startSidecar starts the provisioner of a driver.
func (p *Programs) startSidecar(ctx context.Context, name string, driver *sandbox.Driver) error {
	user := sandbox.ProvisionerAccount.Name()
	if p.turn.Side == plan.Upstream {
		user = sandbox.UpstreamSidecarUser.Name()
	}
	controller, err := p.controller(ctx, name, user, p.SidecarAddress)
	if err != nil {
		return err
	}
	process, err := p.cluster.Plane.StartSidecar(ctx, p.turn.Side == plan.Upstream, driver, controller)
	if err != nil {
		return err
	}
	p.note(name, process)
	return nil
}

// startOthers starts other drivers and their provisioners, which have nothing to do.
func (p *Programs) startOthers(ctx context.Context) error {
	for i := range p.turn.Scenario.Others {
		driver, err := p.startDriver(ctx, fmt.Sprintf("csi-%d.example.com", i))
		if err != nil {
			return err
		}
		if err := p.startSidecar(ctx, measure.OtherSidecars, driver); err != nil {
			return err
		}
	}
	return nil
}

// limits returns the flags for the client limits of upstream's defaults, which the sandbox
// lifts. Our programs have no limits by default.
func (p *Programs) limits(process string) []string {
	switch {
	case p.turn.Side != plan.Upstream || !p.turn.Scenario.Defaults:
		return nil
	case process != measure.Sidecar && process != measure.OtherSidecars:
		return []string{"--kube-api-qps=20", "--kube-api-burst=30"}
	}
	return []string{"--kube-api-qps=5", "--kube-api-burst=10"}
}

// controller returns the configuration of a program, whose log is that of the turn.
func (p *Programs) controller(ctx context.Context, process, user, address string) (sandbox.Controller, error) {
	kubeconfig, err := p.cluster.kubeconfig(user, address)
	if err != nil {
		return sandbox.Controller{}, err
	}
	serving, err := p.serveProfiles(ctx, process)
	return sandbox.Controller{
		Name: fmt.Sprintf("%s-%d-%s-%s", p.turn.Scenario.Name, p.turn.Round, p.turn.Side,
			strings.ReplaceAll(process, " ", "-")),
		HonorReclaimPolicy: true,
		Kubeconfig:         kubeconfig,
		Env:                []string{"NAMESPACE=" + deploy.Namespace, "POD_NAMESPACE=" + deploy.Namespace},
		Args:               append(p.limits(process), serving...),
	}, err
}

// Err returns an error if a program has ended.
func (p *Programs) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, processes := range p.all {
		for _, process := range processes {
			if err := process.Ended(); err != nil {
				return fmt.Errorf("the %s of %s has ended, see %s: %w", name, p.turn.Side, process.LogFile(), err)
			}
		}
	}
	return nil
}

// serveProfiles returns the flags that make a process serve profiles, none without profiling. The
// sidecars that have nothing to do serve none.
func (p *Programs) serveProfiles(ctx context.Context, process string) ([]string, error) {
	if !p.cluster.config.Profiling || process == measure.OtherSidecars {
		return nil, nil
	}
	port, err := sandbox.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	if process == measure.Sidecar {
		p.Profiles[process] = "http://" + address + ProfilePath
		return []string{"--enable-pprof", "--http-endpoint=" + address}, nil
	}
	p.Profiles[process] = "https://" + address + ProfilePath
	return []string{"--profiling", "--bind-address=127.0.0.1", fmt.Sprint("--secure-port=", port),
		"--authorization-always-allow-paths=/debug/pprof/*"}, nil
}

// Stop ends all programs but the control plane.
func (p *Programs) Stop(ctx context.Context) error {
	var errs []error
	for _, name := range []string{measure.Loops, measure.Sidecar, measure.OtherSidecars, measure.Collector} {
		for _, process := range p.all[name] {
			errs = append(errs, process.Stop(ctx))
		}
	}
	for _, driver := range p.drivers {
		errs = append(errs, driver.Stop(ctx))
	}
	for _, proxy := range p.proxies {
		errs = append(errs, proxy.Close())
	}
	return errors.Join(errs...)
}
