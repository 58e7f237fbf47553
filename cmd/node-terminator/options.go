package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentconfig "k8s.io/component-base/config"
	componentoptions "k8s.io/component-base/config/options"

	"github.com/exeunt-io/exeunt/internal/program"
	"github.com/exeunt-io/exeunt/internal/program/serving"
	"github.com/exeunt-io/exeunt/pkg/termination/node"
)

const (
	// defaultNamespace has the reports of a program outside of a cluster.
	defaultNamespace = "exeunt-system"
	// namespaceFile has the namespace of a pod.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// providers are the values of --instances.
var providers = map[string]node.Provider{"none": node.NoProvider, "manual": node.Manual, "socket": node.Socket}

// options are the flags of the program.
type options struct {
	*program.Options
	serving   *serving.Options
	leader    componentconfig.LeaderElectionConfiguration
	workers   int
	instances string
	socket    string
	namespace string
	// maxDisrupted is --max-disrupted.
	maxDisrupted int
}

func newOptions() (program.Runner, error) {
	common, err := program.NewOptions(nil)
	if err != nil {
		return nil, err
	}
	common.NoGates = true
	common.Upstream = program.Limits{QPS: 20, Burst: 30}
	return &options{
		Options: common,
		serving: serving.NewOptions("node-terminator"),
		leader: componentconfig.LeaderElectionConfiguration{
			LeaderElect:       true,
			ResourceLock:      resourcelock.LeasesResourceLock,
			ResourceName:      "node-terminator",
			ResourceNamespace: metav1.NamespaceSystem,
			LeaseDuration:     metav1.Duration{Duration: 15 * time.Second},
			RenewDeadline:     metav1.Duration{Duration: 10 * time.Second},
			RetryPeriod:       metav1.Duration{Duration: 2 * time.Second},
		},
		workers:   500,
		instances: "none",
		namespace: ownNamespace(), maxDisrupted: 1,
	}, nil
}

// ownNamespace returns the namespace of the pod.
func ownNamespace() string {
	text, err := os.ReadFile(namespaceFile)
	if err != nil { // outside of a cluster
		text = nil
	}
	return cmp.Or(os.Getenv("POD_NAMESPACE"), strings.TrimSpace(string(text)), defaultNamespace)
}

// AddFlags registers the flags.
func (o *options) AddFlags(flags *pflag.FlagSet) {
	o.Options.AddFlags(flags)
	o.serving.AddFlags(flags)
	componentoptions.BindLeaderElectionFlags(&o.leader, flags)
	flags.IntVar(&o.workers, "concurrent-node-syncs", o.workers, "number of nodes that are reconciled at once")
	flags.StringVar(&o.instances, "instances", o.instances,
		"who turns machines off: none (the Node goes, and the machine runs on), manual (an administrator, who then sets "+
			"the taint node.kubernetes.io/out-of-service) or socket (the program behind --instances-socket)")
	flags.StringVar(&o.socket, "instances-socket", o.socket,
		"unix socket of the program that turns machines off; it must belong to root or to the user of this process, "+
			"with mode 0600")
	flags.IntVar(&o.maxDisrupted, "max-disrupted", o.maxDisrupted,
		"a NodeClaim of the group lifecycle.exeunt.io that has drifted or expired is deleted, with its Node, while fewer "+
			"nodes than these are being terminated; 0 deletes none")
	flags.StringVar(&o.namespace, "report-namespace", o.namespace,
		"namespace of the ConfigMaps with the reports; the default is that of the pod, outside of a pod "+defaultNamespace)
}

// Complete validates and applies the flags.
func (o *options) Complete() error {
	if err := o.check(); err != nil {
		return err
	}
	return o.Options.Complete()
}

func (o *options) check() error {
	_, known := providers[o.instances]
	switch {
	case !known:
		return fmt.Errorf("--instances must be none, manual or socket, not %q", o.instances)
	case o.instances == "socket" && o.socket == "":
		return errors.New("--instances=socket needs --instances-socket")
	case o.instances != "socket" && o.socket != "":
		return errors.New("--instances-socket has an effect only together with --instances=socket")
	case o.workers < 1:
		return errors.New("--concurrent-node-syncs must be at least 1")
	case o.maxDisrupted < 0:
		return errors.New("--max-disrupted must not be negative")
	case o.namespace == "":
		return errors.New("--report-namespace must not be empty")
	}
	if err := o.serving.Complete(o.Kubeconfig); err != nil {
		return err
	}
	return program.CheckElection(o.leader)
}
