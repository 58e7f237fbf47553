package sandbox

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/exeunt-io/exeunt/deploy"
)

// The service accounts of the controllers, whose rights are in the manifests.
var (
	PVControllerAccount = ServiceAccount(deploy.Namespace, deploy.PVController)
	ProvisionerAccount  = ServiceAccount(deploy.Namespace, deploy.Provisioner)
)

// Identity is a user that a control plane can vouch for.
type Identity struct {
	// name is the user as RBAC sees it.
	name string
	// flags are what the control plane's program calls it by.
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

// Name returns the user as RBAC and the audit log see it.
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

// fileName returns text with what does not belong in a file name replaced.
func fileName(text string) string {
	return strings.NewReplacer(":", "-", "/", "-").Replace(text)
}
