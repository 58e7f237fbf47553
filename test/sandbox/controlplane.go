package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config configures a control plane.
type Config struct {
	// Binaries locates the programs of the control plane and of the controllers.
	Binaries Binaries
	// Dir has data, logs and kubeconfig files, and is created if missing. A control plane
	// on an existing directory has the same objects and, as a rule, the same URL.
	Dir string
	// Durable makes etcd flush every write to disk. Without it a crash of the
	// machine loses data; a crash of the process never does.
	Durable bool
	// FeatureGates of the API server, as Name=true|false[,...].
	FeatureGates string
	// ExtraArgs are further flags of the API server, as key=value.
	ExtraArgs []string
	// NoAuditLog turns the audit log off, which costs CPU time for each request.
	NoAuditLog bool
	// AuditObjects adds the response to each write of a volume or claim to the audit log.
	AuditObjects bool
	// SeparateEtcd runs etcd in a process of its own, so that its CPU time can be told from
	// that of the API server.
	SeparateEtcd bool
	// KubeAPIServer is the path of a kube-apiserver that runs instead of the built-in one, or "".
	KubeAPIServer string
}

// ControlPlane is a running etcd and kube-apiserver.
type ControlPlane struct {
	*Process
	// URL of the API server.
	URL string
	// AuditLog is a file with a JSON line for every finished request, unless Config turns it
	// off.
	AuditLog string
	// Etcd is the process of etcd if it is separate.
	Etcd *Process
	// AdminKubeconfig is the kubeconfig of the administrator.
	AdminKubeconfig string

	config  Config
	program string
	admin   *rest.Config
	client  kubernetes.Interface
}

// StartControlPlane starts a control plane and returns once clients can use it.
func StartControlPlane(ctx context.Context, config Config) (*ControlPlane, error) {
	program, err := config.Binaries.Path(controlPlaneProgram)
	if err != nil {
		return nil, err
	}
	if config.Dir, err = filepath.Abs(config.Dir); err != nil {
		return nil, fmt.Errorf("find directory of the control plane: %w", err)
	}
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of the control plane: %w", err)
	}
	if config.AuditObjects {
		if err := writeAuditPolicy(&config); err != nil {
			return nil, err
		}
	}
	plane := &ControlPlane{
		AuditLog:        filepath.Join(config.Dir, "audit.log"),
		AdminKubeconfig: filepath.Join(config.Dir, "admin.kubeconfig"),
		config:          config,
		program:         program,
	}
	if config.SeparateEtcd {
		if err := plane.startEtcd(ctx); err != nil {
			return nil, err
		}
	}
	if err := plane.startServer(ctx); err != nil {
		return nil, errors.Join(err, plane.Kill())
	}
	plane.URL = plane.ready
	if err := plane.connect(); err != nil {
		return nil, errors.Join(err, plane.Kill())
	}
	return plane, nil
}

// startServer starts the API server, with etcd unless that is separate.
func (c *ControlPlane) startServer(ctx context.Context) (err error) {
	c.Process, err = Start(ctx, Program{
		Name:      controlPlaneProgram,
		Path:      c.program,
		Args:      c.args(),
		LogFile:   filepath.Join(c.config.Dir, controlPlaneProgram+".log"),
		ReadyLine: "controlplane: ready ",
	})
	return err
}

// args returns the flags of the program.
func (c *ControlPlane) args() []string {
	args := []string{
		"--data-dir=" + c.dataDir(),
		"--kubeconfig-out=" + c.AdminKubeconfig,
		"--feature-gates=" + c.config.FeatureGates,
	}
	if !c.config.NoAuditLog {
		args = append(args, "--audit-log="+c.AuditLog)
	}
	switch {
	case c.Etcd != nil:
		args = append(args, "--etcd="+c.Etcd.ready)
	case !c.config.Durable:
		args = append(args, "--in-memory-speed")
	}
	if c.config.KubeAPIServer != "" {
		args = append(args, "--kube-apiserver="+c.config.KubeAPIServer)
	}
	for _, extra := range c.config.ExtraArgs {
		args = append(args, "--extra-arg="+extra)
	}
	return args
}

// dataDir returns the data directory of the control plane.
func (c *ControlPlane) dataDir() string { return filepath.Join(c.config.Dir, "data") }

// connect creates the administrator's clients.
func (c *ControlPlane) connect() (err error) {
	if c.admin, err = LoadConfig(c.AdminKubeconfig); err != nil {
		return err
	}
	if c.client, err = kubernetes.NewForConfig(c.admin); err != nil {
		return fmt.Errorf("make admin client: %w", err)
	}
	return nil
}

// RESTConfig returns a copy of the administrator's client configuration.
func (c *ControlPlane) RESTConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// Client returns the administrator's client.
func (c *ControlPlane) Client() kubernetes.Interface { return c.client }

// LoadConfig reads a client configuration from a kubeconfig, and sets protobuf and no rate
// limit.
func LoadConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config, nil
}

// auditPolicy logs one line per finished request, with the response to each write of a
// volume or claim. The level has the request as well; no level has the response alone.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: RequestResponse
  omitManagedFields: true
  verbs: [create, update, patch, delete]
  resources:
  - group: ""
    resources: [persistentvolumes, persistentvolumes/status, persistentvolumeclaims, persistentvolumeclaims/status]
- level: Metadata
`

// writeAuditPolicy writes the policy and adds the flag that makes the API server use it.
func writeAuditPolicy(config *Config) error {
	file := filepath.Join(config.Dir, "audit-objects.yaml")
	if err := os.WriteFile(file, []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("write audit policy: %w", err)
	}
	config.ExtraArgs = append(slices.Clone(config.ExtraArgs), "audit-policy-file="+file)
	return nil
}

// Restart kills etcd and kube-apiserver, calls change, and starts them again. URL and clients stay the same.
func (c *ControlPlane) Restart(ctx context.Context, change func() error) error {
	if err := c.Kill(); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	if err := c.startServer(ctx); err != nil {
		return err
	}
	if c.ready != c.URL {
		return fmt.Errorf("the API server moved from %s to %s", c.URL, c.ready)
	}
	return nil
}

// SaveEtcd copies the data of an etcd that does not run to the directory, which is replaced.
func (c *ControlPlane) SaveEtcd(to string) error { return replaceDir(to, c.etcdDir()) }

// RestoreEtcd replaces the data of an etcd that does not run by the copy. It raises the revision by the number and marks
// what was before as compacted, as "etcdutl snapshot restore --bump-revision --mark-compacted" does; 0 keeps the revision.
func (c *ControlPlane) RestoreEtcd(ctx context.Context, from string, bump uint64) error {
	if bump == 0 {
		return replaceDir(c.etcdDir(), from)
	}
	restore := exec.CommandContext(ctx, c.program, "restore", "--data-dir="+c.dataDir(), "--from="+from,
		"--bump-revision="+strconv.FormatUint(bump, 10))
	if output, err := restore.CombinedOutput(); err != nil {
		return fmt.Errorf("restore etcd: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

func (c *ControlPlane) etcdDir() string { return filepath.Join(c.dataDir(), "etcd") }

// replaceDir makes the directory to a copy of the directory from.
func replaceDir(to, from string) error {
	if err := errors.Join(os.RemoveAll(to), os.CopyFS(to, os.DirFS(from))); err != nil {
		return fmt.Errorf("copy %s to %s: %w", from, to, err)
	}
	return nil
}
