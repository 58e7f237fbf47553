package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// asKubectl is the environment variable that makes this program run as kubectl.
const asKubectl = "EXEUNT_NODE_AS_KUBECTL"

// RunKubectl runs kubectl if a cluster started this program for it, and reports whether it
// did. Programs call it first.
func RunKubectl() bool {
	if os.Getenv(asKubectl) == "" {
		return false
	}
	util.CheckErr(cmd.NewDefaultKubectlCommand().Execute()) // ends the program on an error
	return true
}

// kubectl runs a kubectl command as the administrator.
func (c *Cluster) kubectl(ctx context.Context, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find kubectl: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, Patience, fmt.Errorf("it did not end within %s", Patience))
	defer cancel()
	command := exec.CommandContext(ctx, self, args...)
	command.Env = append(os.Environ(), asKubectl+"=1", "KUBECONFIG="+c.Kubeconfig, "HOME="+c.config.Dir)
	output, err := command.CombinedOutput()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, output)
	}
	return nil
}
