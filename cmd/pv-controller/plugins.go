package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/migration"
	"github.com/exeunt-io/exeunt/pkg/pvcontroller/intree"
)

// pluginOptions are the flags of the in-tree plugins, with the names and defaults of
// kube-controller-manager.
type pluginOptions struct {
	// hostPath enables the provisioning of host-path volumes.
	hostPath          bool
	nfsPods, hostPods recyclerOptions
}

// recyclerOptions configure the recycler pods of a plugin: a file with the pod, and the
// timeout as a minimum in seconds and an increment per Gi.
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
	const pod = "file with the pod template for recycling %s volumes; its first volume is replaced by the volume to scrub"
	const minimum, increment = "minimum timeout in seconds of a pod that recycles a %s volume",
		"timeout in seconds per Gi of a pod that recycles a %s volume"
	flags.BoolVar(&o.hostPath, "enable-hostpath-provisioner", o.hostPath,
		"let the host-path plugin provision directories below "+intree.HostPathRoot+
			", for tests on a cluster of one machine; their data is lost with the machine")
	flags.StringVar(&o.nfsPods.template, "pv-recycler-pod-template-filepath-nfs", o.nfsPods.template,
		fmt.Sprintf(pod, "NFS"))
	flags.Int32Var(&o.nfsPods.minimum, "pv-recycler-minimum-timeout-nfs", o.nfsPods.minimum, fmt.Sprintf(minimum, "NFS"))
	flags.Int32Var(&o.nfsPods.increment, "pv-recycler-increment-timeout-nfs", o.nfsPods.increment,
		fmt.Sprintf(increment, "NFS"))
	flags.StringVar(&o.hostPods.template, "pv-recycler-pod-template-filepath-hostpath", o.hostPods.template,
		fmt.Sprintf(pod, "host-path"))
	flags.Int32Var(&o.hostPods.minimum, "pv-recycler-minimum-timeout-hostpath", o.hostPods.minimum,
		fmt.Sprintf(minimum, "host-path"))
	flags.Int32Var(&o.hostPods.increment, "pv-recycler-timeout-increment-hostpath", o.hostPods.increment,
		fmt.Sprintf(increment, "host-path"))
}

// newSet returns the in-tree plugins that the flags configure.
func (o *pluginOptions) newSet() (*intree.Set, error) {
	nfs, err := o.nfsPods.recycling("nfs")
	if err != nil {
		return nil, err
	}
	host, err := o.hostPods.recycling("hostpath")
	if err != nil {
		return nil, err
	}
	return intree.NewSet(migration.New(),
		&intree.HostPath{Root: intree.HostPathRoot, Provisions: o.hostPath, Recycling: host, Node: controller.NodeName()},
		&intree.NFS{Recycling: nfs},
	), nil
}

// configuration returns the options for /configz.
func (o *pluginOptions) configuration() recyclerConfiguration {
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
		return intree.Recycling{},
			fmt.Errorf("the timeout for recycling %s volumes is %d seconds plus %d seconds per Gi: the minimum must be at least 1 and the increment not negative", plugin, o.minimum, o.increment)
	}
	template, err := intree.LoadTemplate(o.template)
	if err != nil {
		return intree.Recycling{}, fmt.Errorf("use --pv-recycler-pod-template-filepath-%s: %w", plugin, err)
	}
	return intree.Recycling{Template: template, MinimumTimeout: o.minimum, TimeoutIncrement: o.increment}, nil
}
