package rig

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/exeunt-io/exeunt/bench/delay"
	"github.com/exeunt-io/exeunt/bench/measure"
	"github.com/exeunt-io/exeunt/bench/plan"
	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/internal/sandbox"
)

// Programs are the processes of one turn.
type Programs struct {
	// Driver is nil for the ceiling.
	Driver *sandbox.Driver
	// LoopsAddress and SidecarAddress are those of the API server for the two programs, behind
	// proxies if there is a network delay.
	LoopsAddress, SidecarAddress string

	rig     *Rig
	turn    plan.Turn
	all     map[string]*sandbox.Process
	proxies []*delay.Proxy
}

// NewPrograms prepares the programs of a turn. Nothing but driver and proxies runs yet.
func (r *Rig) NewPrograms(ctx context.Context, turn plan.Turn) (p *Programs, err error) {
	p = &Programs{rig: r, turn: turn, all: map[string]*sandbox.Process{measure.Server: r.Plane.Process}}
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
	if turn.Side == plan.Ceiling {
		return p, nil
	}
	return p, p.startDriver(ctx)
}

// openProxy returns the address of the API server for a program.
func (p *Programs) openProxy() (string, error) {
	server, err := url.Parse(p.rig.Plane.URL)
	if err != nil {
		return "", fmt.Errorf("parse address of the API server: %w", err)
	}
	if p.turn.Scenario.NetworkDelay == 0 {
		return server.Host, nil
	}
	proxy, err := delay.Start(server.Host, p.turn.Scenario.NetworkDelay)
	if err != nil {
		return "", err
	}
	p.proxies = append(p.proxies, proxy)
	return proxy.Address(), nil
}

// startDriver starts a driver that keeps its volumes in memory, with a new call log.
func (p *Programs) startDriver(ctx context.Context) error {
	p.rig.serial++
	dir := filepath.Join(p.rig.dir, fmt.Sprintf("driver-%d", p.rig.serial))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make directory of the driver: %w", err)
	}
	args := []string{"--state-file="}
	if latency := p.turn.Scenario.DriverLatency; latency > 0 {
		file := filepath.Join(dir, "faults.yaml")
		faults := fmt.Appendf(nil, "[{method: CreateVolume, latency: %s}, {method: DeleteVolume, latency: %[1]s}]", latency)
		if err := os.WriteFile(file, faults, 0o600); err != nil {
			return fmt.Errorf("write latency of the driver: %w", err)
		}
		args = append(args, "--faults="+file)
	}
	driver, err := sandbox.StartDriver(ctx, sandbox.DriverConfig{Binaries: p.rig.config.Binaries, Dir: dir, Args: args})
	if err != nil {
		return err
	}
	p.Driver, p.all[measure.Driver] = driver, driver.Process
	return nil
}

// Start starts the programs of the side. The ceiling has none.
func (p *Programs) Start(ctx context.Context) error {
	if p.turn.Side == plan.Ceiling {
		return nil
	}
	users := [2]string{sandbox.PVControllerAccount.Name(), sandbox.ProvisionerAccount.Name()}
	if p.turn.Side == plan.Upstream {
		users = [2]string{upstreamLoops, sandbox.UpstreamSidecarUser.Name()}
	}
	loops, err := p.rig.kubeconfig(users[0], p.LoopsAddress)
	if err != nil {
		return err
	}
	sidecar, err := p.rig.kubeconfig(users[1], p.SidecarAddress)
	if err != nil {
		return err
	}
	if p.turn.Side == plan.Upstream {
		return p.startUpstream(ctx, loops, sidecar)
	}
	return p.startOurs(ctx, loops, sidecar)
}

// startOurs starts our programs. They have no client limits by default.
func (p *Programs) startOurs(ctx context.Context, loops, sidecar string) (err error) {
	plane := p.rig.Plane
	p.all[measure.Loops], err = plane.StartPVController(ctx, p.controller(measure.Loops, loops))
	if err != nil {
		return err
	}
	p.all[measure.Sidecar], err = plane.StartProvisioner(ctx, p.Driver, p.controller(measure.Sidecar, sidecar))
	return err
}

// startUpstream starts upstream's programs, whose client limits the sandbox lifts.
func (p *Programs) startUpstream(ctx context.Context, loops, sidecar string) (err error) {
	plane := p.rig.Plane
	controllers := [2]sandbox.Controller{p.controller(measure.Loops, loops), p.controller(measure.Sidecar, sidecar)}
	if p.turn.Scenario.Defaults {
		controllers[0].Args = append(controllers[0].Args, "--kube-api-qps=20", "--kube-api-burst=30")
		controllers[1].Args = append(controllers[1].Args, "--kube-api-qps=5", "--kube-api-burst=10")
	}
	if p.all[measure.Loops], err = plane.StartUpstreamLoops(ctx, controllers[0]); err != nil {
		return err
	}
	p.all[measure.Sidecar], err = plane.StartUpstreamProvisioner(ctx, p.Driver, controllers[1])
	return err
}

// controller returns the configuration of a program, whose log is that of the turn.
func (p *Programs) controller(process, kubeconfig string) sandbox.Controller {
	return sandbox.Controller{
		Name:               fmt.Sprintf("%s-%d-%s-%s", p.turn.Scenario.Name, p.turn.Round, p.turn.Side, process),
		HonorReclaimPolicy: true,
		Kubeconfig:         kubeconfig,
		Env:                []string{"NAMESPACE=" + deploy.Namespace, "POD_NAMESPACE=" + deploy.Namespace},
	}
}

// Err returns an error if a program has ended.
func (p *Programs) Err() error {
	for name, process := range p.all {
		select {
		case <-process.Done():
			return errors.Join(fmt.Errorf("the %s of %s has ended, see %s", name, p.turn.Side, process.LogFile()), process.Err())
		default:
		}
	}
	return nil
}

// Stop ends all programs but the control plane.
func (p *Programs) Stop(ctx context.Context) error {
	var errs []error
	for _, name := range []string{measure.Loops, measure.Sidecar} {
		if process := p.all[name]; process != nil {
			errs = append(errs, process.Stop(ctx))
		}
	}
	if p.Driver != nil {
		errs = append(errs, p.Driver.Stop(ctx))
	}
	for _, proxy := range p.proxies {
		errs = append(errs, proxy.Close())
	}
	return errors.Join(errs...)
}
