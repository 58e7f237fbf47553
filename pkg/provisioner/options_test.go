package provisioner_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/exeunt-io/exeunt/pkg/provisioner"
)

// newController returns a controller that would run without leader election.
func newController(options ...provisioner.Option) *provisioner.ProvisionController {
	return provisioner.NewProvisionController(klog.Background(), fake.NewClientset(), "example.com/nfs", &export{},
		options...)
}

// canceled returns a context that has ended.
func canceled(t *testing.T) context.Context {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	return ctx
}

func TestInvalidOptionEndsRun(t *testing.T) {
	for name, option := range map[string]provisioner.Option{
		"Node":             provisioner.Node("node-a"), // the default is leader election
		"Threadiness":      provisioner.Threadiness(0),
		"RetryInterval":    provisioner.RetryInterval(time.Second, time.Millisecond),
		"UnresolvedAfter":  provisioner.UnresolvedAfter(0),
		"LeaseDuration":    provisioner.LeaseDuration(12 * time.Second),
		"RenewDeadline":    provisioner.RenewDeadline(time.Second),
		"RetryPeriod":      provisioner.RetryPeriod(0),
		"MetricsPath":      provisioner.MetricsPath("metrics"),
		"MetricsPort":      provisioner.MetricsPort(-1),
		"ProvisionTimeout": provisioner.ProvisionTimeout(-1),
		"DeletionTimeout":  provisioner.DeletionTimeout(-1),
	} {
		t.Run(name, func(t *testing.T) {
			c := newController(option)
			if err := c.Run(t.Context()); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("Run = %v, want an error that names the option", err)
			}
			if c.HasRun() {
				t.Error("the controller has run")
			}
		})
	}
}

func TestProvisionerNeedsAName(t *testing.T) {
	c := provisioner.NewProvisionController(klog.Background(), fake.NewClientset(), "", &export{})
	if err := c.Run(t.Context()); err == nil {
		t.Error("a provisioner without a name runs")
	}
}

func TestDeadlinesDoNotCountWithoutElection(t *testing.T) {
	c := newController(provisioner.LeaderElection(false), provisioner.LeaseDuration(0))
	ctx := canceled(t)
	if err := c.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestControllerRunsOnce(t *testing.T) {
	c := newController(provisioner.LeaderElection(false))
	ctx := canceled(t)
	if err := c.Run(ctx); err != nil || !c.HasRun() {
		t.Errorf("Run = %v, HasRun = %v", err, c.HasRun())
	}
	if err := c.Run(ctx); err == nil {
		t.Error("a controller runs twice")
	}
}
