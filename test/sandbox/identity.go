package sandbox

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/exeunt-io/exeunt/deploy"
)

// The service accounts of the controllers. The manifests grant their rights.
var (
	PVControllerAccount     = ServiceAccount(deploy.Namespace, deploy.PVController)
	ProvisionerAccount      = ServiceAccount(deploy.Namespace, deploy.Provisioner)
	GarbageCollectorAccount = ServiceAccount(deploy.Namespace, deploy.GarbageCollectorAccount)
	NodeTerminatorAccount   = ServiceAccount(deploy.Namespace, deploy.NodeTerminatorAccount)
	AliveControllerAccount  = ServiceAccount(deploy.Namespace, deploy.AliveController)
)

// Identity is a user for whom the control plane can issue a kubeconfig.
type Identity struct {
	// name of the user in RBAC.
	name string
	// flags identify the user to the control plane program.
	flags []string
}

// User returns the identity of the named user in groups.
func User(name string, groups ...string) Identity {
	flags := []string{"--user=" + name}
	for _, group := range groups {
		flags = append(flags, "--group="+group)
	}
	return Identity{name: name, flags: flags}
}

// ServiceAccount returns the identity of a service account, which need not
// exist as an object.
func ServiceAccount(namespace, name string) Identity {
	return Identity{
		name:  "system:serviceaccount:" + namespace + ":" + name,
		flags: []string{"--service-account=" + namespace + "/" + name},
	}
}

// Name returns the name of the user in RBAC and in the audit log.
func (i Identity) Name() string { return i.name }

// Kubeconfig writes a kubeconfig for identity and returns its file.
func (c *ControlPlane) Kubeconfig(ctx context.Context, identity Identity) (string, error) {
	file := filepath.Join(c.config.Dir, fileName(identity.name)+".kubeconfig")
	args := append([]string{"kubeconfig", "--data-dir=" + c.dataDir(), "--out=" + file}, identity.flags...)
	if output, err := exec.CommandContext(ctx, c.program, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("write kubeconfig of %s: %w: %s", identity.name, err, strings.TrimSpace(string(output)))
	}
	return file, nil
}

// fileName returns text with unsuitable characters replaced.
func fileName(text string) string {
	return strings.NewReplacer(":", "-", "/", "-").Replace(text)
}
