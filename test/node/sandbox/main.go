// Sandbox runs a cluster with a real node until Ctrl-C, to try commands in it:
//
//	make sandbox-node
//	sandbox --node
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/exeunt-io/exeunt/test/node/internal/cluster"
	"github.com/exeunt-io/exeunt/test/node/internal/driver"
)

// hint are commands to copy into a terminal. Its verbs stand for the version of the node's
// image, the namespace of the driver, the volumes, the call log, and the logs of pods.
const hint = `The node runs kubelet and containerd. kubectl logs and exec do not reach it.
Set KUBECONFIG in another terminal and try:

kubectl create -f - <<EOF
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: mine}
spec:
  storageClassName: directory
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Mi}}
---
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  containers:
  - name: writer
    image: %s
    command: [/node, use, /data/file, kept until the end]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes:
  - name: data
    persistentVolumeClaim: {claimName: mine}
EOF
kubectl get pods --all-namespaces      # repeat until writer is Running
kubectl delete pv --wait=false "$(kubectl get pvc mine -o jsonpath={.spec.volumeName})"   # the PV first
kubectl delete pvc mine --wait=false   # then its claim: both wait for the pod
grep -r kept %[3]s
kubectl delete pod writer              # now everything goes
cat %[4]s

The driver's pod is in the namespace %[2]s. Logs of pods are in %[5]s.
Ctrl-C stops everything and removes it.
`

func main() {
	if cluster.RunKubectl() {
		return
	}
	slog.SetLogLoggerLevel(slog.LevelWarn) // the chart has symbolic links on purpose
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(1)
	}
}

// run starts a cluster and stops it when ctx ends, which is no error, or when one of its
// programs ends.
func run(ctx context.Context, args []string) (err error) {
	var config cluster.Config
	side := cluster.Ours
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	flags.StringVar(&config.Source, "source", ".", "root of the repository")
	flags.StringVar(&config.Binaries, "bin-dir", "bin", "directory of the programs")
	flags.StringVar((*string)(&side), "side", string(side),
		"programs that create and delete volumes: ours, chart or upstream")
	keep := flags.Bool("keep", false, "keep data and logs at the end")
	if err := flags.Parse(args); err != nil {
		return err
	}
	config.Side = side
	for _, path := range []*string{&config.Source, &config.Binaries} {
		if *path, err = filepath.Abs(*path); err != nil {
			return fmt.Errorf("find programs: %w", err)
		}
	}
	if config.Dir, err = os.MkdirTemp("", "node-"); err != nil {
		return fmt.Errorf("create directory of the cluster: %w", err)
	}
	if *keep {
		fmt.Fprintln(os.Stderr, "data and logs stay in", config.Dir)
	} else {
		defer func() { err = errors.Join(err, os.RemoveAll(config.Dir)) }()
	}
	return serve(ctx, config)
}

// serve runs a cluster until ctx or one of its programs ends.
func serve(ctx context.Context, config cluster.Config) error {
	fmt.Fprintln(os.Stderr, "starting a control plane and a node (about half a minute)")
	c, err := cluster.Start(ctx, config)
	if ctx.Err() != nil && c == nil {
		return nil // Ctrl-C while starting; what had started was stopped
	}
	if err != nil {
		return err
	}
	fmt.Printf("export KUBECONFIG=%s\n", c.Kubeconfig)
	fmt.Fprintf(os.Stderr, hint, c.Image("node"), cluster.Namespace, c.DriverDir(driver.VolumesDir),
		c.DriverDir(driver.CallLog), filepath.Join(c.NodeDir(), "log", "pods"))
	c.Wait(ctx)
	return c.Stop()
}
