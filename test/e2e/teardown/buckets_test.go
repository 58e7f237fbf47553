package teardown

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/exeunt-io/exeunt/examples"
	"github.com/exeunt-io/exeunt/examples/bucket-operator/operator"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// bucketRig is a cluster with a participant, bucket-operator, and with backups of etcd.
type bucketRig struct {
	*rig
	directory string
	operator  *sandbox.Process
}

func newBucketRig(t *testing.T) *bucketRig {
	t.Helper()
	t.Parallel()
	setup := stock
	setup.Restarts = true
	b := &bucketRig{rig: rigOf(harness.Own(t, setup, harness.Within(4*time.Minute))), directory: t.TempDir()}
	b.installAlive()
	b.Must(sandbox.Apply(b.Ctx, b.Plane.RESTConfig(), examples.Buckets), "apply manifests")
	b.Until("Buckets are served", func() bool {
		_, err := b.buckets().List(b.Ctx, metav1.ListOptions{})
		return err == nil
	})
	b.beginOperator()
	b.Until("the operator is registered", func() bool {
		return slices.Contains(alive.ParticipantsOf(b.aliveNow()), operator.Participant)
	})
	return b
}

func (b *bucketRig) beginOperator() {
	b.T.Helper()
	path, err := harness.Binaries().Path(operator.Program)
	b.Must(err, "find bucket-operator")
	kubeconfig, err := b.Plane.Kubeconfig(b.Ctx, sandbox.ServiceAccount(operator.Program, operator.Program))
	b.Must(err, "write kubeconfig")
	b.operator, err = sandbox.Start(b.Ctx, sandbox.Program{Name: operator.Program, Path: path,
		Args:    []string{"--kubeconfig=" + kubeconfig, "--directory=" + b.directory},
		LogFile: filepath.Join(b.Dir, operator.Program+".log"), ReadyLine: operator.Program + ": ready"})
	b.Must(err, "start bucket-operator")
	b.Add(b.operator)
}

func (b *bucketRig) killOperator() {
	b.T.Helper()
	b.ExpectEnd(b.operator)
	b.Must(b.operator.Kill(), "kill bucket-operator")
}

func (b *bucketRig) buckets() dynamic.ResourceInterface {
	b.T.Helper()
	client, err := dynamic.NewForConfig(b.Plane.RESTConfig())
	b.Must(err, "make client")
	return client.Resource(operator.Resource).Namespace(metav1.NamespaceDefault)
}

// makeBucket creates a Bucket, and waits for its directory. It returns the path.
func (b *bucketRig) makeBucket() string {
	b.T.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.exeunt.io/v1", "kind": "Bucket",
		"metadata": map[string]any{"generateName": "b-"}}}
	created, err := b.buckets().Create(b.Ctx, object, metav1.CreateOptions{})
	b.Must(err, "create Bucket")
	path := filepath.Join(b.directory, string(created.GetUID()))
	b.Until("the bucket is made", func() bool { return isDirectory(path) })
	return path
}

func (b *bucketRig) expectBuckets(wanted bool, paths ...string) {
	b.T.Helper()
	for _, path := range paths {
		if exists := isDirectory(path); exists != wanted {
			b.T.Errorf("bucket %s exists: %t, want %t", filepath.Base(path), exists, wanted)
		}
	}
}

func isDirectory(path string) bool {
	found, err := os.Stat(path)
	return err == nil && found.IsDir()
}
