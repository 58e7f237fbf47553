package load

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/sandbox"
	"github.com/exeunt-io/exeunt/test/upstream/rbac"
)

// Config configures a cluster.
type Config struct {
	// Binaries locates the programs.
	Binaries sandbox.Binaries
	// Profiling makes the programs serve profiles.
	Profiling bool
}

// Cluster is a control plane.
type Cluster struct {
	Plane *sandbox.ControlPlane

	config  Config
	dir     string
	running *sandbox.Cluster
	tokens  map[string]string
	serial  int
}

// startLimit bounds the start of a program.
const startLimit = 3 * time.Minute

// Start starts a control plane in a new directory.
func Start(ctx context.Context, config Config) (c *Cluster, err error) {
	dir, err := os.MkdirTemp("", "exeunt-bench-")
	if err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	c = &Cluster{config: config, dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop(context.WithoutCancel(ctx), false))
		}
	}()
	var tokens []byte
	if c.tokens, tokens, err = newTokens(); err != nil {
		return c, err
	}
	file := filepath.Join(dir, "tokens.csv")
	if err = os.WriteFile(file, tokens, 0o600); err != nil {
		return c, fmt.Errorf("write tokens: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c.running, err = sandbox.StartCluster(ctx, sandbox.ClusterConfig{
		Config: sandbox.Config{
			Binaries: config.Binaries, Dir: dir, NoAuditLog: true, SeparateEtcd: true,
			ExtraArgs: []string{"token-auth-file=" + file},
		},
		Manifests: []fs.FS{deploy.Manifests, deploy.GarbageCollector, rbac.Manifests},
	})
	if err == nil {
		c.Plane = c.running.Plane
	}
	return c, err
}

// Stop ends the control plane and removes its data, but keeps the logs if so wanted.
func (c *Cluster) Stop(ctx context.Context, keepLogs bool) error {
	var errs []error
	if c.running != nil {
		errs = append(errs, c.running.Stop(ctx))
	}
	if !keepLogs {
		return errors.Join(append(errs, os.RemoveAll(c.dir))...)
	}
	for _, data := range []string{"data", "etcd"} {
		errs = append(errs, os.RemoveAll(filepath.Join(c.dir, data)))
	}
	return errors.Join(errs...)
}

// Client returns the configuration of a client of the user, with a connection of its own and
// without a rate limit. The address replaces that of the API server unless it is empty.
func (c *Cluster) Client(user, address string) *rest.Config {
	config := c.Plane.RESTConfig()
	config.TLSClientConfig = rest.TLSClientConfig{CAData: config.CAData}
	config.BearerToken = c.tokens[user]
	config.Dial = (&net.Dialer{Timeout: 30 * time.Second}).DialContext // not shared with other clients
	if address != "" {
		config.Host = "https://" + address
	}
	return config
}

// kubeconfig writes a kubeconfig of the user and returns its file.
func (c *Cluster) kubeconfig(user, address string) (string, error) {
	const name = "bench"
	client := c.Client(user, address)
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: client.Host, CertificateAuthorityData: client.CAData}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: client.BearerToken}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	c.serial++
	file := filepath.Join(c.dir, fmt.Sprintf("%d.kubeconfig", c.serial))
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return "", fmt.Errorf("write kubeconfig of %s: %w", user, err)
	}
	return file, nil
}
