package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/exeunt-io/exeunt/pkg/audit"
	"github.com/exeunt-io/exeunt/pkg/provisioner/csi"
)

// auditFlags are the flags of "exeunt audit".
type auditFlags struct {
	// config has the flags for the connection to the first cluster.
	config       *genericclioptions.ConfigFlags
	kubeconfigs  []string
	contexts     []string
	csiAddress   string
	volumes      string
	driver       string
	adopt        []string
	storageClass string
	state        string
	output       string
	settle       time.Duration
	timeout      time.Duration
}

const auditExamples = `  # Compare the volumes of a driver with the current cluster:
  %[1]s audit --csi-address /run/csi/socket

  # Two clusters use the storage system:
  %[1]s audit --csi-address /run/csi/socket --kubeconfig a.kubeconfig --kubeconfig b.kubeconfig

  # The driver cannot list its volumes, so a file does:
  %[1]s audit --volumes disks.json --driver ebs.csi.aws.com

  # Print a PersistentVolume for an orphan, and create it:
  %[1]s audit --csi-address /run/csi/socket --adopt vol-1 | kubectl create -f -`

// newAuditCommand returns "exeunt audit". program is how the user calls the command.
func newAuditCommand(streams genericiooptions.IOStreams, program string) *cobra.Command {
	flags := auditFlags{config: genericclioptions.NewConfigFlags(true)}
	flags.config.Namespace = nil // the command reads the whole cluster
	command := &cobra.Command{
		Use:   "audit (--csi-address SOCKET | --volumes FILE --driver NAME) [--adopt HANDLE...]",
		Short: "Compare the volumes in storage with what clusters know, and name orphans",
		Long: "audit lists the volumes of a storage system and everything in the clusters that refers to\n" +
			"volumes. A volume is an orphan if nothing refers to it in two passes, doubtful if something\n" +
			"may need it. A ghost is a PersistentVolume without a volume; shared is a handle that several\n" +
			"PersistentVolumes have. audit deletes nothing: that no PersistentVolume exists is no proof\n" +
			"that nobody wants the volume. Name every cluster that uses the storage system.",
		Example: fmt.Sprintf(auditExamples, program),
		RunE: func(command *cobra.Command, further []string) error {
			if err := flags.check(command, further); err != nil {
				return err
			}
			return flags.run(command.Context(), streams)
		},
	}
	flags.addFlags(command)
	return command
}

func (f *auditFlags) addFlags(command *cobra.Command) {
	set := command.Flags()
	f.config.KubeConfig, f.config.Context, f.config.Timeout = nil, nil, nil // replaced below
	addConnection(set, f.config)
	set.StringArrayVar(&f.kubeconfigs, "kubeconfig", nil,
		"kubeconfig of a cluster that uses the storage system; repeat the flag for further clusters, the first is that of the driver")
	set.StringArrayVar(&f.contexts, "context", nil,
		"context in the kubeconfig; repeat the flag for each --kubeconfig, or for further clusters of one kubeconfig")
	set.StringVar(&f.csiAddress, "csi-address", "", "path of the CSI driver's socket")
	set.StringVar(&f.volumes, "volumes", "",
		"JSON file that lists the volumes of the storage system, or adds names, sizes and ages to those that the driver lists")
	set.StringVar(&f.driver, "driver", "", "name of the CSI driver, for --volumes without --csi-address")
	set.StringArrayVar(&f.adopt, "adopt", nil,
		"print a PersistentVolume with the policy Retain for this orphan; repeat the flag, or add further handles")
	set.StringVar(&f.storageClass, "storage-class", "", "storage class that names the secrets of adopted volumes")
	set.StringVar(&f.state, "state", "",
		"file that remembers when volumes were first reported, for the ages of orphans; created if it does not exist")
	set.StringVarP(&f.output, "output", "o", "", "json, yaml, wide or name; empty prints a table")
	set.DurationVar(&f.settle, "settle", 10*time.Second,
		"time between the two passes, for what is being created or handed over")
	set.DurationVar(&f.timeout, "timeout", 30*time.Second,
		"time limit for one call to the driver or one request to an API server")
}

// ofOneCluster are the flags that name or authenticate a cluster. With several, each needs its own.
var ofOneCluster = []string{
	"server", "cluster", "user", "token", "certificate-authority", "client-certificate", "client-key", "tls-server-name",
	"insecure-skip-tls-verify",
}

// check refuses flags that contradict each other.
func (f *auditFlags) check(command *cobra.Command, further []string) error {
	help := ", see " + command.CommandPath() + " --help"
	if len(f.adopt) == 0 && len(further) > 0 {
		return fmt.Errorf("%s takes no arguments, not %q%s", command.CommandPath(), further[0], help)
	}
	f.adopt = append(f.adopt, further...)
	switch {
	case f.csiAddress == "" && f.volumes == "":
		return errors.New("one of --csi-address and --volumes is required" + help)
	case f.csiAddress == "" && f.driver == "":
		return errors.New("--volumes needs --driver, or --csi-address for the name of the driver")
	case f.settle < 0:
		return errors.New("--settle must not be negative")
	case f.timeout <= 0:
		return errors.New("--timeout must be longer than 0")
	case f.count() > 1 && slices.ContainsFunc(ofOneCluster, command.Flags().Changed):
		return fmt.Errorf("--%s is for one cluster, not %d: what it sets belongs into their kubeconfigs",
			ofOneCluster[slices.IndexFunc(ofOneCluster, command.Flags().Changed)], f.count())
	case len(f.kubeconfigs) > 1 && len(f.contexts) > 0 && len(f.contexts) != len(f.kubeconfigs):
		return fmt.Errorf("%d --kubeconfig need as many --context or none, not %d", len(f.kubeconfigs), len(f.contexts))
	}
	return f.checkOutput()
}

// checkOutput refuses formats that do not exist, or not with --adopt.
func (f *auditFlags) checkOutput() error {
	adopting := len(f.adopt) > 0
	switch {
	case !slices.Contains(audit.Formats, f.output):
		return fmt.Errorf("--output must be json, yaml, wide, name or be left out, not %q", f.output)
	case adopting && !slices.Contains([]string{"", "json", "yaml"}, f.output):
		return fmt.Errorf("--output of --adopt must be json, yaml or be left out, not %q", f.output)
	case !adopting && f.storageClass != "":
		return errors.New("--storage-class is for --adopt only")
	}
	return nil
}

func (f *auditFlags) run(ctx context.Context, streams genericiooptions.IOStreams) error {
	config := audit.Config{DriverName: f.driver, File: f.volumes, Settle: f.settle}
	if f.csiAddress != "" {
		driver, err := f.connect(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = driver.Close() }()
		config.Driver = driver
	}
	clusters, err := f.clusters()
	if err != nil {
		return err
	}
	config.Clusters = clusters
	report, err := audit.Run(ctx, config)
	if err != nil {
		return err
	}
	if f.state != "" {
		if err := report.Remember(f.state, time.Now()); err != nil {
			return err
		}
	}
	if len(f.adopt) > 0 {
		return f.printAdopted(ctx, streams, clusters[0], report)
	}
	if question := report.Question(); question != "" && f.output != "" && f.output != "wide" {
		fmt.Fprintln(streams.ErrOut, question)
	}
	if err := report.Print(streams.Out, f.output); err != nil {
		return err
	}
	if f.output == "name" && !report.IsComplete() {
		return errors.New("not everything was read, so no orphan is named: -o wide says what could not be read")
	}
	return nil
}

// connect connects to the driver. A socket that does not exist is not waited for.
func (f *auditFlags) connect(ctx context.Context) (*csi.Driver, error) {
	if path := strings.TrimPrefix(strings.TrimPrefix(f.csiAddress, "unix:"), "//"); !strings.Contains(path, "://") {
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("there is no CSI driver at --csi-address: %w", err)
		}
	}
	driver, err := csi.Connect(ctx, csi.Config{Address: f.csiAddress, Timeout: f.timeout, Wait: f.timeout,
		Metrics: csi.NewMetrics()})
	if err != nil {
		return nil, err
	}
	if f.driver != "" && f.driver != driver.Name() {
		return nil, errors.Join(fmt.Errorf("the driver at --csi-address is %s, not %s as --driver says", driver.Name(),
			f.driver), driver.Close())
	}
	return driver, nil
}

// count returns the number of named clusters.
func (f *auditFlags) count() int { return max(len(f.kubeconfigs), len(f.contexts), 1) }

// clusters returns all named clusters, or the current one.
func (f *auditFlags) clusters() ([]*audit.Cluster, error) {
	all := make([]*audit.Cluster, 0, f.count())
	for i := range f.count() {
		config := f.config
		if i > 0 {
			config = genericclioptions.NewConfigFlags(false)
			config.Impersonate, config.ImpersonateUID = f.config.Impersonate, f.config.ImpersonateUID
			config.ImpersonateGroup, config.ImpersonateUserExtra = f.config.ImpersonateGroup, f.config.ImpersonateUserExtra
			config.DisableCompression = f.config.DisableCompression
		}
		config.KubeConfig, config.Context = nth(f.kubeconfigs, i), nth(f.contexts, i)
		if len(f.kubeconfigs) == 1 {
			config.KubeConfig = &f.kubeconfigs[0]
		}
		cluster, err := f.cluster(config)
		if err != nil {
			return nil, err
		}
		all = append(all, cluster)
	}
	return all, nil
}

// nth returns an element, or "".
func nth(all []string, i int) *string {
	value := ""
	if i < len(all) {
		value = all[i]
	}
	return &value
}

// cluster returns the cluster of one configuration, which is named for its context.
func (f *auditFlags) cluster(config *genericclioptions.ConfigFlags) (*audit.Cluster, error) {
	loaded, err := restConfigOf(config)
	if err != nil {
		return nil, err
	}
	name := *config.Context
	if raw, err := config.ToRawKubeConfigLoader().RawConfig(); err == nil {
		name = cmp.Or(name, raw.CurrentContext)
	}
	cluster, err := audit.NewCluster(cmp.Or(name, loaded.Host)+" ("+loaded.Host+")", loaded)
	if err != nil {
		return nil, err
	}
	cluster.Timeout = f.timeout
	return cluster, nil
}
