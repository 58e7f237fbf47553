package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
)

// ClusterConfig configures a cluster.
type ClusterConfig struct {
	// Config is that of the control plane.
	Config
	// FixedAddress gives the API server an address to which it can return, see ChooseAddress.
	FixedAddress bool
	// Manifests are applied once the API server runs.
	Manifests []fs.FS
	// Died, unless nil, is called with the reason when a program ends without being stopped, from a
	// goroutine of its own.
	Died func(error)
}

// Cluster is a control plane, and programs that stop before it.
type Cluster struct {
	Plane *ControlPlane
	// Dir has data and logs. It stays when the cluster stops.
	Dir string

	config ClusterConfig
	mu     sync.Mutex
	// programs are in the order of their start. The control plane is the first.
	programs []*program
}

// program is a process that must run until it is stopped.
type program struct {
	process  *Process
	stop     func(context.Context) error // nil for its Stop
	stopping chan struct{}               // closed before stop is called
	watched  chan struct{}               // closed once the process is no longer watched
	died     bool                        // the process ended before stop; set when watched is closed
}

// StartCluster starts a control plane and applies the manifests.
func StartCluster(ctx context.Context, config ClusterConfig) (*Cluster, error) {
	c := &Cluster{Dir: config.Dir, config: config}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) (err error) {
	if c.config.FixedAddress {
		if err := ChooseAddress(c.Dir); err != nil {
			return err
		}
	}
	if c.Plane, err = StartControlPlane(ctx, c.config.Config); err != nil {
		return err
	}
	// Nobody needs the data of the control plane, so killing it saves time.
	c.add(c.Plane.Process, func(context.Context) error { return c.Plane.Kill() })
	for _, manifests := range c.config.Manifests {
		if err := Apply(ctx, c.Plane.RESTConfig(), manifests); err != nil {
			return err
		}
	}
	return nil
}

// StartDriver starts a mock driver. The binaries and, unless it is set, the directory are those of the cluster.
func (c *Cluster) StartDriver(ctx context.Context, config DriverConfig) (*Driver, error) {
	config.Binaries = c.config.Binaries
	if config.Dir == "" {
		config.Dir = c.Dir
	}
	driver, err := StartDriver(ctx, config)
	if err != nil {
		return nil, err
	}
	c.add(driver.Process, driver.Stop)
	return driver, nil
}

// StartLoops starts pv-controller, or the loops of upstream that it replaces.
func (c *Cluster) StartLoops(ctx context.Context, upstream bool, controller Controller) (*Process, error) {
	process, err := c.Plane.StartLoops(ctx, upstream, controller)
	return c.keep(process, err)
}

// StartProvisioner starts the provisioner of the driver, ours or upstream's.
func (c *Cluster) StartProvisioner(
	ctx context.Context, upstream bool, driver *Driver, controller Controller,
) (*Process, error) {
	process, err := c.Plane.StartSidecar(ctx, upstream, driver, controller)
	return c.keep(process, err)
}

// Run starts another program.
func (c *Cluster) Run(ctx context.Context, program Program) (*Process, error) {
	process, err := Start(ctx, program)
	return c.keep(process, err)
}

func (c *Cluster) keep(process *Process, err error) (*Process, error) {
	if err == nil {
		c.Add(process)
	}
	return process, err
}

// Add makes the cluster stop a process, and report the process if it ends before.
func (c *Cluster) Add(process *Process) { c.add(process, nil) }

func (c *Cluster) add(process *Process, stop func(context.Context) error) {
	added := &program{process: process, stop: stop, stopping: make(chan struct{}), watched: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.programs = append(c.programs, added)
	if c.config.Died == nil {
		close(added.watched)
		return
	}
	go func() {
		defer close(added.watched)
		select {
		case <-added.stopping:
		case <-process.Done():
			if err := process.Ended(); err != nil {
				added.died = true
				c.config.Died(err)
			}
		}
	}()
}

// take returns the program of a process, which the cluster no longer has, or nil.
func (c *Cluster) take(process *Process) (taken *program) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.programs = slices.DeleteFunc(c.programs, func(p *program) bool {
		if p.process == process {
			taken = p
		}
		return p.process == process
	})
	return taken
}

// Processes returns the programs but control plane and drivers, in the order of their start.
func (c *Cluster) Processes() []*Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*Process
	for _, p := range c.programs {
		if p.stop == nil {
			all = append(all, p.process)
		}
	}
	return all
}

// Forget leaves a process to the caller.
func (c *Cluster) Forget(process *Process) {
	if taken := c.take(process); taken != nil {
		close(taken.stopping)
		<-taken.watched
	}
}

// End stops a process of the cluster. A process that died was reported before, and is no error here.
func (c *Cluster) End(ctx context.Context, process *Process) error {
	if taken := c.take(process); taken != nil {
		return taken.end(ctx)
	}
	return nil
}

// Kill ends a process of the cluster as a crash does, without a report.
func (c *Cluster) Kill(process *Process) error {
	c.Forget(process)
	return process.Kill()
}

// KillBut ends all processes but this one as the end of their machines does, without a report.
func (c *Cluster) KillBut(kept *Process) error {
	c.mu.Lock()
	var processes []*Process
	for _, p := range c.programs {
		if p.process != kept {
			processes = append(processes, p.process)
		}
	}
	c.mu.Unlock()
	var errs []error
	for _, process := range processes {
		errs = append(errs, c.Kill(process))
	}
	return errors.Join(errs...)
}

// end stops the program.
func (p *program) end(ctx context.Context) error {
	close(p.stopping)
	<-p.watched
	stop := p.stop
	if stop == nil {
		stop = p.process.Stop
	}
	if err := stop(ctx); !p.died {
		return err
	}
	return nil
}

// Ended returns an error if a program has ended by itself.
func (c *Cluster) Ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, p := range c.programs {
		errs = append(errs, p.process.Ended())
	}
	return errors.Join(errs...)
}

// Stop ends all programs, the last one first.
func (c *Cluster) Stop(ctx context.Context) error {
	c.mu.Lock()
	programs := c.programs
	c.programs = nil
	c.mu.Unlock()
	var errs []error
	for _, p := range slices.Backward(programs) {
		errs = append(errs, p.end(ctx))
	}
	return errors.Join(errs...)
}
