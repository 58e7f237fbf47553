package garbage

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/exeunt-io/exeunt/deploy"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/faultproxy"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// side is a garbage collector under test.
type side string

const (
	ours  side = "ours"
	stock side = "stock"
)

// rig is a control plane with one garbage collector, which may reach it over a proxy.
type rig struct {
	side
	plane   *sandbox.ControlPlane
	client  dynamic.Interface
	typed   kubernetes.Interface
	process *sandbox.Process
	dir     string
	// gate is in the proxy, if there is one.
	gate *gate
	// kubeconfig of the collector.
	kubeconfig string
	flags      []string
	// lateKinds is the number of custom kinds that scenarios have taken for themselves.
	lateKinds *atomic.Int32
}

// start starts a control plane and the collector.
func start(t *testing.T, which side, withProxy bool, flags ...string) *rig {
	t.Helper()
	planes <- struct{}{}
	t.Cleanup(func() { <-planes })
	return startAtOnce(t, which, withProxy, flags...)
}

// startAtOnce is start for a test that waits most of the time: it does not count.
func startAtOnce(t *testing.T, which side, withProxy bool, flags ...string) *rig {
	t.Helper()
	r := &rig{side: which, dir: t.TempDir(), flags: flags, lateKinds: &atomic.Int32{}}
	if os.Getenv("EXEUNT_KEEP") != "" {
		r.dir = filepath.Join(os.Getenv("EXEUNT_KEEP"), filepath.Base(t.Name())+"-"+string(which))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cluster, err := sandbox.StartCluster(ctx, sandbox.ClusterConfig{
		Config:    sandbox.Config{Binaries: harness.Binaries(), Dir: r.dir},
		Manifests: []fs.FS{deploy.Manifests, deploy.GarbageCollector},
	})
	must(t, err, "start cluster")
	t.Cleanup(func() { _ = cluster.Stop(context.Background()) })
	r.plane, r.typed = cluster.Plane, cluster.Plane.Client()
	config := r.plane.RESTConfig()
	config.QPS = -1
	r.client, err = dynamic.NewForConfig(config)
	must(t, err, "make client")
	must(t, sandbox.ApplyYAML(ctx, config, []byte(definitions())), "define kinds")
	if withProxy {
		must(t, sandbox.ApplyYAML(ctx, config, []byte(lateDefinitions())), "define late kinds")
	}
	must(t, sandbox.ApplyYAML(ctx, config, []byte(freezing)), "apply policy")
	account := sandbox.GarbageCollectorAccount
	if which == stock {
		account = sandbox.UpstreamCollectorAccount
	}
	r.kubeconfig, err = r.plane.Kubeconfig(ctx, account)
	must(t, err, "write kubeconfig")
	if withProxy {
		r.gate = newGate()
		_, r.kubeconfig, err = harness.StartFaultProxy(t, r.kubeconfig,
			faultproxy.Config{Wrap: r.gate.guard, Change: r.gate.modify})
		must(t, err, "start proxy")
		t.Cleanup(r.gate.open)
	}
	r.run(t)
	t.Cleanup(func() { r.stop(t) })
	return r
}

// run starts the collector and waits until it collects.
func (r *rig) run(t *testing.T) {
	t.Helper()
	r.launch(t)
	w := r.world(t)
	w.create(configMaps, "garbage", w.absentOwner())
	w.awaitGone(configMaps, "garbage")
	w.awaitFreezing()
}

// kill ends the collector as kill -9 does.
func (r *rig) kill(t *testing.T) {
	t.Helper()
	must(t, r.process.Kill(), "kill collector")
	<-r.process.Done()
}

// launch starts the collector.
func (r *rig) launch(t *testing.T) {
	t.Helper()
	start := r.plane.StartGarbageCollector
	if r.side == stock {
		start = r.plane.StartUpstreamCollector
	}
	var err error
	r.process, err = start(t.Context(), sandbox.Controller{Kubeconfig: r.kubeconfig,
		Args: append([]string{"--leader-elect=false", "--v=4"}, r.flags...)})
	must(t, err, "start collector")
}

// logs reports whether a line of the collector's log has the texts.
func (r *rig) logs(texts ...string) bool {
	log, err := os.ReadFile(r.process.LogFile())
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(log)) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			return true
		}
	}
	return false
}

func (r *rig) stop(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := r.process.Stop(ctx); err != nil {
		t.Errorf("stop collector: %v", err)
	}
}

func must(t *testing.T, err error, what string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
