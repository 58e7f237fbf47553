package load

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/exeunt-io/exeunt/test/sandbox"
)

// workers is the number of objects that garbage collectors handle at once by default.
const workers = 20

// deleter makes the writes that no garbage collector can spare: a deletion of each dependent
// under its UID and resourceVersion, and a patch of each owner that is deleted in the
// foreground. An idle watcher of metadata stands for the program.
type deleter struct {
	configMaps corev1.ConfigMapInterface
	policy     metav1.DeletionPropagation
}

// newDeleter connects the deleter, and opens the watch.
func newDeleter(ctx context.Context, cluster *Cluster, s *session) (*deleter, error) {
	config := cluster.Client(sandbox.GarbageCollectorAccount.Name(), s.programs.LoopsAddress)
	config.QPS = -1
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf,
		runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect the ceiling: %w", err)
	}
	watching := rest.CopyConfig(config)
	watching.APIPath, watching.GroupVersion, watching.NegotiatedSerializer = "/api", &v1.SchemeGroupVersion,
		scheme.Codecs.WithoutConversion()
	watching.AcceptContentTypes = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	idle, err := rest.RESTClientFor(watching)
	if err != nil {
		return nil, fmt.Errorf("connect the ceiling: %w", err)
	}
	if err := watchIdly(ctx, s.objects, idle, configMapResource); err != nil {
		return nil, err
	}
	return &deleter{configMaps: client.CoreV1().ConfigMaps(s.namespace), policy: policyOf(s.turn.Scenario)}, nil
}

// collect deletes all dependents of a deleted owner, and releases the owners.
func (d *deleter) collect(ctx context.Context, t tree) error {
	err := d.each(ctx, t.inner, func(ctx context.Context,
		object *v1.ConfigMap) error {
		return d.delete(ctx, object, d.policy)
	})
	if err != nil {
		return err
	}
	err = d.each(ctx, t.leaves, func(ctx context.Context, object *v1.ConfigMap) error {
		return d.delete(ctx, object, metav1.DeletePropagationBackground)
	})
	if err != nil || d.policy != metav1.DeletePropagationForeground {
		return err
	}
	release := func(ctx context.Context, object *v1.ConfigMap) error { return patchOut(ctx, d.configMaps, object) }
	if err := d.each(ctx, t.inner, release); err != nil {
		return err
	}
	return release(ctx, t.root)
}

// each calls f for each object, as many at once as a program has workers.
func (d *deleter) each(ctx context.Context, objects []*v1.ConfigMap,
	f func(context.Context, *v1.ConfigMap) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for _, object := range objects {
		group.Go(func() error { return f(ctx, object) })
	}
	return group.Wait()
}

// delete deletes an object that is as created.
func (d *deleter) delete(ctx context.Context, object *v1.ConfigMap, policy metav1.DeletionPropagation) error {
	err := d.configMaps.Delete(ctx, object.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion},
		PropagationPolicy: &policy,
	})
	if err != nil {
		return fmt.Errorf("delete dependent: %w", err)
	}
	return nil
}

// patchOut removes the finalizers of an object.
func patchOut(ctx context.Context, configMaps corev1.ConfigMapInterface, object *v1.ConfigMap) error {
	body := fmt.Sprintf(`{"metadata":{"uid":%q,"finalizers":null}}`, object.UID)
	if _, err := configMaps.Patch(ctx, object.Name, types.MergePatchType, []byte(body),
		metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("remove finalizers: %w", err)
	}
	return nil
}
