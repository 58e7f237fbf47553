package machines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// DriverName is the name of the CSI driver, and DriverApp the label "app" of its pods.
const (
	DriverName = "disk.cloudmock.exeunt.io"
	DriverApp  = "cloudmock-driver"
)

// Config configures a cloud.
type Config struct {
	// Socket is the path of the socket, or "" for none.
	Socket string
	// Nodes is the number of machines, and FirstNode the number in the name of the first.
	Nodes, FirstNode int
	// Log is the file to which the events are appended, and Faults the file with the faults, or "".
	Log, Faults string
	// LeaseDuration is the duration of the Leases of Nodes, in whole seconds.
	LeaseDuration time.Duration
	// StopUnsupported: no machine can be stopped.
	StopUnsupported bool
	// DriverPodRequired: disks are mounted and unmounted only while a pod of the driver runs on the machine. Without it,
	// this holds for machines that had such a pod.
	DriverPodRequired bool
	// NoScheduler leaves pending pods to another scheduler.
	NoScheduler bool
	// Warnings gets what went wrong.
	Warnings io.Writer
	// Ready is called once all machines have registered their Nodes.
	Ready func()
}

// Cloud has machines and disks.
type Cloud struct {
	config Config
	client kubernetes.Interface
	views  views
	// life ends with the cloud, and group has what it started.
	life     context.Context
	group    sync.WaitGroup
	attacher *attacher
	log      io.Writer

	// mu guards what follows, all machines, their pods, and the log.
	mu       sync.Mutex
	machines []*machine // in the order of their numbers
	byName   map[string]*machine
	disks    map[string]*disk
	waiting  map[*machine]bool // without a Node so far
}

// Run runs a cloud until ctx ends.
func Run(ctx context.Context, client kubernetes.Interface, config Config) (err error) {
	log, err := os.OpenFile(config.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	ctx, stop := context.WithCancel(ctx)
	c := newCloud(ctx, client, config, log)
	defer c.group.Wait()
	defer stop()
	return c.run(ctx)
}

func newCloud(ctx context.Context, client kubernetes.Interface, config Config, log io.Writer) *Cloud {
	c := &Cloud{
		config: config, client: client, life: ctx, log: log,
		byName: map[string]*machine{}, disks: map[string]*disk{}, waiting: map[*machine]bool{},
	}
	for i := range config.Nodes {
		m := newMachine(c, config.FirstNode+i)
		c.machines = append(c.machines, m)
		c.byName[m.name] = m
		c.waiting[m] = true
	}
	c.attacher = newAttacher(c)
	c.views = newViews(client)
	return c
}

func (c *Cloud) run(ctx context.Context) error {
	if err := c.createDriver(ctx); err != nil {
		return err
	}
	scheduler := newScheduler(c)
	if err := c.watch(scheduler); err != nil {
		return err
	}
	if !c.views.start(ctx) {
		return context.Cause(ctx)
	}
	c.group.Go(func() { c.attacher.run(ctx) })
	if !c.config.NoScheduler {
		c.group.Go(func() { scheduler.run(ctx) })
	}
	if c.config.Faults != "" {
		c.group.Go(func() { c.readFaults(ctx) })
	}
	c.mu.Lock()
	for _, m := range c.machines {
		m.start()
	}
	c.mu.Unlock()
	return c.serve(ctx)
}

// createDriver creates the CSIDriver.
func (c *Cloud) createDriver(ctx context.Context) error {
	yes, no := true, false
	_, err := c.client.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: DriverName},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: &yes, PodInfoOnMount: &no},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create CSIDriver: %w", err)
	}
	return nil
}

// registered tells that the machine has a Node.
func (c *Cloud) registered(m *machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		return
	}
	delete(c.waiting, m)
	if len(c.waiting) == 0 && c.config.Ready != nil {
		c.config.Ready()
	}
}

// warn writes what went wrong.
func (c *Cloud) warn(err error) {
	if c.config.Warnings != nil && c.life.Err() == nil {
		fmt.Fprintln(c.config.Warnings, time.Now().Format(time.RFC3339Nano), err)
	}
}
