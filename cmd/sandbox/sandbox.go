package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/csimock"
	"github.com/exeunt-io/exeunt/pkg/features"
	"github.com/exeunt-io/exeunt/test/demo"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// startTimeout limits the start of a cluster.
const startTimeout = 2 * time.Minute

// hint are commands to copy into a terminal. Its verbs stand for the addresses of both
// controllers, the class, the call log, and what more can be tried.
const hint = `The cluster has a control plane, pv-controller, provisioner, a mock CSI driver and the admission policy; it has no nodes.
Metrics: curl -k https://%s/metrics   # pv-controller
         curl http://%s/metrics       # provisioner
Set KUBECONFIG in another terminal and try:

kubectl create -f - <<EOF
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: mine}
spec:
  storageClassName: %s
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
EOF
kubectl get pv,pvc        # repeat until the claim is Bound
kubectl delete pv --wait=false "$(kubectl get pvc mine -o jsonpath={.spec.volumeName})"
kubectl delete pvc mine   # the PV first, then its claim
grep DeleteVolume %s
%s
Ctrl-C stops everything and removes it.
`

const long = `sandbox runs the cluster of the demo until Ctrl-C, to try commands in it. It has no nodes.

With --node it runs kubelet and containerd on this machine, for pods that use volumes. That needs Linux,
the root user, and programs that "make node" builds in a clone of the repository.

With --graceful-deletion it runs kube-apiserver of Exeunt, which gives custom resources the grace period
of kubectl delete, and two controllers that honor it. That needs Linux, and "make apiserver".

With --cloud it also has load balancers, snapshots, and the loops of kube-controller-manager for workloads.
That needs "make build-upstream".

With --cloud-nodes=3 it runs simulated nodes with pods and a disk, and node-terminator, which ends the nodes
that are deleted. That needs "make build-upstream".`

// sandboxFlags are the flags of "sandbox".
type sandboxFlags struct {
	binDir string
	gates  map[string]bool
	faults string
	keep   bool
	node   bool
	// cloud: the cluster has load balancers and snapshots, too.
	cloud bool
	// graceful: the cluster is for custom resources with a grace period, and has no volumes.
	graceful bool
	// cloudNodes is the number of simulated nodes. With one the cluster has node-terminator, and no csimock.
	cloudNodes int
}

// newCommand returns the command.
func newCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := sandboxFlags{gates: map[string]bool{}}
	command := &cobra.Command{
		Use:           "sandbox",
		Short:         "Run the cluster of the demo until Ctrl-C, to try commands in it",
		Long:          long,
		Args:          terminal.RejectUnknown,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(command *cobra.Command, _ []string) error {
			if flags.cloud && (flags.node || flags.graceful || command.Flags().Changed("cloud-nodes")) {
				return errBalancerFlags
			}
			if command.Flags().Changed("cloud-nodes") {
				return flags.runCloud(command.Context(), streams)
			}
			return flags.runChosen(command.Context(), streams)
		},
	}
	command.SetOut(streams.Out)
	command.SetErr(streams.ErrOut)
	command.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return terminal.ExplainFlag(command.Flags(), err, command.CommandPath()+" --help")
	})
	command.CompletionOptions.DisableDefaultCmd = true
	command.AddCommand(newDemoCommand(streams))
	set := command.Flags()
	set.StringVar(&flags.binDir, "bin-dir", "",
		"directory of the programs to start (default: the directory of this program)")
	set.Var(cliflag.NewMapStringBool(&flags.gates), "feature-gates",
		"feature gates of both controllers: HonorPVReclaimPolicy=true|false (default true)")
	set.StringVar(&flags.faults, "faults", "",
		"YAML or JSON file with a list of faults of the driver: method, volume, code, times, every, latency, hang, disconnect, after, response")
	set.BoolVar(&flags.keep, "keep", false, "keep data and logs at the end, and print their directory")
	set.BoolVar(&flags.cloud, "cloud", false,
		"also run load balancers, snapshots, and kube-controller-manager's loops for workloads (after \"make build-upstream\")")
	set.BoolVar(&flags.graceful, "graceful-deletion", false,
		"run kube-apiserver of Exeunt and the controllers of examples/virtual-machine and examples/database instead of volumes")
	set.IntVar(&flags.cloudNodes, "cloud-nodes", 0, "run this number of simulated nodes and node-terminator instead of volumes")
	set.BoolVar(&flags.node, "node", false, "run a cluster with a real node (Linux, as root, after \"make node\")")
	return command
}

// runChosen runs the cluster that the flags choose.
func (f sandboxFlags) runChosen(ctx context.Context, streams genericiooptions.IOStreams) error {
	switch {
	case f.graceful:
		return f.runGraceful(ctx, streams)
	case f.node:
		return f.runNode(ctx, streams)
	}
	programs, err := f.programs()
	if err != nil {
		return err
	}
	return f.run(ctx, streams, programs)
}

// honor checks the feature gates and returns HonorPVReclaimPolicy.
func (f sandboxFlags) honor() (bool, error) {
	gate, err := features.NewGate()
	if err != nil {
		return false, err
	}
	if err := features.Set(gate, f.gates); err != nil {
		return false, err
	}
	return gate.Enabled(features.HonorPVReclaimPolicy), nil
}

// programs checks the flags, and returns how the programs run. The controllers serve metrics at
// free ports of this machine.
func (f sandboxFlags) programs() (sandboxPrograms, error) {
	honor, err := f.honor()
	if err != nil {
		return sandboxPrograms{}, err
	}
	p := sandboxPrograms{Programs: demo.Programs{Honor: honor}}
	if f.faults != "" {
		if _, err := csimock.LoadFaults(f.faults); err != nil {
			return p, fmt.Errorf("--faults: %w", err)
		}
		path, err := filepath.Abs(f.faults)
		if err != nil {
			return p, fmt.Errorf("--faults: %w", err)
		}
		p.Driver = []string{"--faults=" + path}
	}
	if p.controller, err = freeAddress(); err != nil {
		return p, err
	}
	if p.provisioner, err = freeAddress(); err != nil {
		return p, err
	}
	p.Provisioner = []string{"--http-endpoint=" + p.provisioner.String()}
	p.Controller = []string{"--bind-address=" + p.controller.IP.String(),
		fmt.Sprintf("--secure-port=%d", p.controller.Port), "--authorization-always-allow-paths=/metrics"}
	return p, nil
}

// sandboxPrograms are programs, and the addresses of the metrics of both controllers.
type sandboxPrograms struct {
	demo.Programs
	controller, provisioner *net.TCPAddr
}

// freeAddress returns a free address of this machine.
func freeAddress() (*net.TCPAddr, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("find a free port for metrics: %w", err)
	}
	address, _ := listener.Addr().(*net.TCPAddr)
	return address, listener.Close()
}

// awaitListener waits until a program listens at the address.
func awaitListener(ctx context.Context, address *net.TCPAddr) error {
	for ctx.Err() == nil {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address.String())
		if err == nil {
			return connection.Close()
		}
		sandbox.Pause(ctx, 20*time.Millisecond)
	}
	return fmt.Errorf("wait for metrics at %s: %w", address, context.Cause(ctx))
}

// errProgramEnded is why the sandbox ends by itself.
var errProgramEnded = errors.New("a program of the sandbox has ended, so all others are stopped")

// run starts the cluster and stops it when ctx ends, which is no error, or when one of its programs
// ends.
func (f sandboxFlags) run(ctx context.Context, streams genericiooptions.IOStreams, programs sandboxPrograms) error {
	guarded, end := context.WithCancelCause(ctx)
	defer end(nil)
	cluster, more, err := f.start(guarded, streams, programs,
		func(err error) { end(fmt.Errorf("%w: %w", errProgramEnded, err)) })
	if err != nil {
		return err
	}
	fmt.Fprintf(streams.Out, "export KUBECONFIG=%s\n", cluster.Kubeconfig())
	fmt.Fprintf(streams.ErrOut, hint, programs.controller, programs.provisioner, demo.ClassName, cluster.CallLog(), more)
	<-guarded.Done()
	if cause := context.Cause(guarded); errors.Is(cause, errProgramEnded) {
		return errors.Join(cause, cluster.Stop())
	}
	return cluster.Stop()
}

// start starts the cluster and its programs, and returns what more can be tried. If ctx ends before, the error is the
// cause.
func (f sandboxFlags) start(ctx context.Context, streams genericiooptions.IOStreams, programs sandboxPrograms,
	died func(error)) (cluster *demo.Cluster, more string, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, startTimeout,
		fmt.Errorf("the cluster was not ready within %s", startTimeout))
	defer cancel()
	cluster, err = demo.StartCluster(limited, demo.ClusterConfig{
		Binaries: sandbox.Binaries{Dir: f.binDir},
		Keep:     f.keep,
		Progress: demo.Progress{Out: streams.ErrOut},
		Died:     died,
	})
	if err != nil {
		return nil, "", cmp.Or(context.Cause(ctx), err)
	}
	err = fill(limited, streams, cluster, programs)
	if err == nil && f.cloud {
		more, err = startBalancers(limited, cluster)
	}
	if err != nil {
		return nil, "", errors.Join(cmp.Or(context.Cause(ctx), err), cluster.Stop())
	}
	return cluster, more, nil
}

// fill starts the programs of the cluster, waits until they serve metrics, and creates its admission policy and its class.
func fill(ctx context.Context, streams genericiooptions.IOStreams, cluster *demo.Cluster,
	programs sandboxPrograms) error {
	if err := cluster.StartPrograms(ctx, programs.Programs); err != nil {
		return err
	}
	for _, address := range []*net.TCPAddr{programs.controller, programs.provisioner} {
		if err := awaitListener(ctx, address); err != nil {
			return err
		}
	}
	err := cluster.ApplyAdmission(ctx)
	var unserved *meta.NoKindMatchError
	if errors.As(err, &unserved) {
		fmt.Fprintln(streams.ErrOut,
			"sandbox: this version of Kubernetes has no MutatingAdmissionPolicy, so the admission policy is left out")
		err = nil
	}
	if err != nil {
		return err
	}
	return cluster.ApplyClass(ctx)
}

// errNodeFlags: a cluster with a node takes fewer flags.
var errNodeFlags = errors.New("--node runs the manifests as they are: leave out --faults and --feature-gates")

// runNode runs a cluster with kubelet and containerd until ctx ends. A clone of the repository
// builds its programs.
func (f sandboxFlags) runNode(ctx context.Context, streams genericiooptions.IOStreams) error {
	if f.faults != "" || len(f.gates) > 0 {
		return errNodeFlags
	}
	binaries := sandbox.Binaries{Dir: f.binDir}
	program, err := binaries.NodePath("sandbox")
	if err != nil {
		return fmt.Errorf("--node needs kubelet and containerd, which a clone of the repository builds: %w", err)
	}
	if err := checkMachine(ctx, filepath.Join(filepath.Dir(program), "node")); err != nil {
		return err
	}
	directory := filepath.Dir(filepath.Dir(program))
	args := []string{"--bin-dir=" + directory, "--source=" + filepath.Dir(directory)}
	if f.keep {
		args = append(args, "--keep")
	}
	return sandbox.RunForeground(ctx, streams.Out, streams.ErrOut, program, args...)
}

// checkMachine returns an error that says why no node can run on this machine.
func checkMachine(ctx context.Context, launcher string) error {
	reason, err := exec.CommandContext(ctx, launcher, "check").Output()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("try a node on this machine: %w", err)
	case len(reason) > 0:
		return fmt.Errorf("no node can run on this machine: %s", strings.TrimSpace(string(reason)))
	}
	return nil
}
