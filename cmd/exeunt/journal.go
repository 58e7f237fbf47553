package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/pkg/journalctl"

	"github.com/exeunt-io/exeunt/internal/terminal"
)

// journalFlags are the flags of "exeunt journal" and its subcommands.
type journalFlags struct {
	config  *genericclioptions.ConfigFlags
	output  string
	timeout time.Duration
	yes     bool
}

// newJournalCommand returns "exeunt journal".
func newJournalCommand(streams genericiooptions.IOStreams) *cobra.Command {
	flags := journalFlags{config: genericclioptions.NewConfigFlags(true)}
	command := &cobra.Command{
		Use:   "journal",
		Short: "Show the provisioning journal, and end entries that the provisioner cannot end",
		Long: "The provisioner writes an entry to its journal before it calls CreateVolume, and removes the\n" +
			"entry once the volume is recorded as a PersistentVolume, or does not exist. An entry is\n" +
			"unresolved if the provisioner cannot find out whether a volume exists. Only an\n" +
			"administrator can end such an entry: with finish or with drop.",
		Args: terminal.RejectUnknown,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	addConnection(command.PersistentFlags(), flags.config)
	command.AddCommand(flags.newListCommand(streams), flags.newFinishCommand(streams), flags.newDropCommand(streams))
	return command
}

func (f *journalFlags) newListCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "list",
		Short: "List the entries of all journals, or of those in the namespace --namespace",
		Long: "list shows the entries of all journals. The provisioner works on entries that are requested\n" +
			"or discarding. End unresolved entries with finish or drop. An unreadable entry is an\n" +
			"annotation that cannot be decoded.",
		Args: terminal.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if f.output != "" && f.output != "json" && f.output != "yaml" {
				return fmt.Errorf("--output must be json, yaml or be left out, not %q", f.output)
			}
			client, err := f.client()
			if err != nil {
				return err
			}
			found, err := journalctl.List(command.Context(), client, *f.config.Namespace)
			if err != nil {
				return err
			}
			for _, lease := range found.Ignored {
				fmt.Fprintf(streams.ErrOut, "ignoring Lease %s: it has the label of a journal, but not the name and owner of one\n",
					lease)
			}
			return found.Print(streams.Out, f.output, time.Now())
		},
	}
	command.Flags().StringVarP(&f.output, "output", "o", "",
		"json or yaml prints the decoded entries; empty prints a table")
	return command
}

func (f *journalFlags) newFinishCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "finish CLAIM-UID...",
		Short: "Have the provisioner repeat the requests of unresolved entries and record their volumes",
		Long: "finish marks unresolved entries. Their provisioner repeats the stored CreateVolume request,\n" +
			"which returns an existing volume or creates one, and records the volume as a\n" +
			"PersistentVolume for the claim. First remove the reason why the entry is unresolved, such as\n" +
			"a missing secret.\n\n" +
			"If the claim is gone, the volume is reclaimed by its policy: kept with Retain, deleted with\n" +
			"its data with Delete, also if a user removed claim and PersistentVolume to keep the disk.\n" +
			"finish therefore asks first, if there is a terminal. To keep the disk, drop the entry and\n" +
			"record the disk in a PersistentVolume.",
		Args: atLeastOneClaim,
		RunE: func(command *cobra.Command, claims []string) error {
			if f.timeout <= 0 {
				return errors.New("--timeout must be longer than 0")
			}
			resolver, err := f.resolver(streams)
			if err != nil {
				return err
			}
			return resolver.Finish(command.Context(), uids(claims))
		},
	}
	command.Flags().DurationVar(&f.timeout, "timeout", time.Minute,
		"how long to wait for the provisioner to take the entries")
	command.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	return command
}

func (f *journalFlags) newDropCommand(streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "drop CLAIM-UID...",
		Short: "Remove unresolved entries after their volumes were handled in the storage system",
		Long: "drop removes unresolved entries, and neither creates nor deletes a volume. A volume that exists\n" +
			"and that no PersistentVolume records is then known to the storage system only. drop prints the\n" +
			"name to look for there, and asks first unless a PersistentVolume records the volume.\n\n" +
			"drop also removes entries of the journal of a node (--node-deployment) that does not exist\n" +
			"any more: no provisioner of another node ends them. It always asks first then.",
		Args: atLeastOneClaim,
		RunE: func(command *cobra.Command, claims []string) error {
			resolver, err := f.resolver(streams)
			if err != nil {
				return err
			}
			return resolver.Drop(command.Context(), uids(claims))
		},
	}
	command.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask for confirmation")
	return command
}

// atLeastOneClaim refuses a command line without claim UIDs.
func atLeastOneClaim(command *cobra.Command, claims []string) error {
	if len(claims) == 0 {
		return fmt.Errorf("%s needs the UID of a claim, as journal list shows it", command.CommandPath())
	}
	return nil
}

func uids(claims []string) []types.UID {
	all := make([]types.UID, len(claims))
	for i, claim := range claims {
		all[i] = types.UID(claim)
	}
	return all
}

// journalRequestTimeout bounds each request to an API server that accepts it and does not answer; a watch is
// begun again.
const journalRequestTimeout = time.Minute

func (f *journalFlags) restConfig() (*rest.Config, error) {
	config, err := restConfigOf(f.config)
	if err != nil {
		return nil, err
	}
	if config.Timeout == 0 { // --request-timeout is not set
		config = rest.CopyConfig(config)
		config.Timeout = journalRequestTimeout
	}
	return config, nil
}

func (f *journalFlags) client() (kubernetes.Interface, error) {
	config, err := f.restConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return client, nil
}

func (f *journalFlags) resolver(streams genericiooptions.IOStreams) (journalctl.Resolver, error) {
	client, err := f.client()
	return journalctl.Resolver{
		Client: client, Namespace: *f.config.Namespace, Out: streams.Out, In: terminalInput(streams.In), Yes: f.yes,
		Timeout: f.timeout,
	}, err
}

// terminalInput returns the input if it is a terminal, or nil.
func terminalInput(input io.Reader) io.Reader {
	if file, is := input.(*os.File); is && term.IsTerminal(int(file.Fd())) {
		return file
	}
	return nil
}
