package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
)

// pluginOptions are the flags of the in-tree plugins, which are named as those of
// kube-controller-manager are, and its defaults.
type pluginOptions struct {
	// hostPath has host-path volumes provisioned.
	hostPath          bool
	nfsPods, hostPods recyclerOptions
}

// recyclerOptions are those of one plugin's recycler pods: a file with the pod, the
// least time in seconds and the time for each Gi.
type recyclerOptions struct {
	template           string
	minimum, increment int32
}

func newPluginOptions() pluginOptions {
	return pluginOptions{
		nfsPods:  recyclerOptions{minimum: 300, increment: 30},
		hostPods: recyclerOptions{minimum: 60, increment: 30},
	}
}

// AddFlags registers the flags.
func (o *pluginOptions) AddFlags(flags *pflag.FlagSet) {
	const pod = "file with the pod that recycles %s volumes, in place of the default one; its first volume is replaced by the one to scrub"
	const least, each = "least time in seconds that a pod may take that recycles a %s volume", "time in seconds for each Gi that a pod may take that recycles a %s volume"
	flags.BoolVar(&o.hostPath, "enable-hostpath-provisioner", o.hostPath, "let the host-path plugin provision directories below "+intree.HostPathRoot+", for tests on a cluster of one machine; their data is lost with the machine")
	flags.StringVar(&o.nfsPods.template, "pv-recycler-pod-template-filepath-nfs", o.nfsPods.template, fmt.Sprintf(pod, "NFS"))
	flags.Int32Var(&o.nfsPods.minimum, "pv-recycler-minimum-timeout-nfs", o.nfsPods.minimum, fmt.Sprintf(least, "NFS"))
	flags.Int32Var(&o.nfsPods.increment, "pv-recycler-increment-timeout-nfs", o.nfsPods.increment, fmt.Sprintf(each, "NFS"))
	flags.StringVar(&o.hostPods.template, "pv-recycler-pod-template-filepath-hostpath", o.hostPods.template, fmt.Sprintf(pod, "host-path"))
	flags.Int32Var(&o.hostPods.minimum, "pv-recycler-minimum-timeout-hostpath", o.hostPods.minimum, fmt.Sprintf(least, "host-path"))
	flags.Int32Var(&o.hostPods.increment, "pv-recycler-timeout-increment-hostpath", o.hostPods.increment, fmt.Sprintf(each, "host-path"))
}

// plugins returns the in-tree plugins as the flags want them.
func (o *pluginOptions) plugins() (*intree.Set, error) {
	nfs, err := o.nfsPods.recycling("nfs")
	if err != nil {
		return nil, err
	}
	host, err := o.hostPods.recycling("hostpath")
	if err != nil {
		return nil, err
	}
	return intree.NewSet(migration.New(),
		&intree.HostPath{Root: intree.HostPathRoot, Provisions: o.hostPath, Recycling: host, Node: machine()},
		&intree.NFS{Recycling: nfs},
	), nil
}

// machine is the name of the machine, which kubelets call their node by, "" if unknown.
func machine() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return strings.ToLower(name)
}

// effective are the options as /configz shows them.
func (o *pluginOptions) effective() recyclerConfiguration {
	return recyclerConfiguration{
		PodTemplateFilePathNFS:      o.nfsPods.template,
		MinimumTimeoutNFS:           o.nfsPods.minimum,
		IncrementTimeoutNFS:         o.nfsPods.increment,
		PodTemplateFilePathHostPath: o.hostPods.template,
		MinimumTimeoutHostPath:      o.hostPods.minimum,
		IncrementTimeoutHostPath:    o.hostPods.increment,
	}
}

func (o recyclerOptions) recycling(plugin string) (intree.Recycling, error) {
	if o.minimum < 1 || o.increment < 0 {
		return intree.Recycling{}, fmt.Errorf("the least time for recycling %s volumes is %d seconds and %d more for each Gi: it must be at least one second, and none less", plugin, o.minimum, o.increment)
	}
	template, err := intree.LoadTemplate(o.template)
	if err != nil {
		return intree.Recycling{}, fmt.Errorf("use --pv-recycler-pod-template-filepath-%s: %w", plugin, err)
	}
	return intree.Recycling{Template: template, MinimumTimeout: o.minimum, TimeoutIncrement: o.increment}, nil
}
