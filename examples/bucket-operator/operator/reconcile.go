package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/alive"
	"github.com/exeunt-io/exeunt/pkg/patch"
)

// reconcileAlive registers, or removes all buckets once the cluster may be cleaned up.
func (o *Operator) reconcileAlive(ctx context.Context) error {
	seen := cached(o.alive, alive.Name)
	if seen == nil {
		return nil
	}
	one, err := alive.FromUnstructured(seen)
	switch {
	case err != nil:
		return err
	case !one.IsDeleted():
		return o.register(ctx)
	case !slices.Contains(one.Finalizers, Participant.Finalizer), !alive.CleanUp(one, time.Now()):
		return nil
	}
	return o.cleanUp(ctx)
}

// register takes part, and makes the directories that were waited for.
func (o *Operator) register(ctx context.Context) error {
	if err := alive.Register(ctx, o.client, Participant); err != nil {
		return err
	}
	if err := o.directories.reopen(); err != nil {
		return err
	}
	for _, key := range o.buckets.GetStore().ListKeys() {
		o.queue.Add(key)
	}
	return nil
}

// cleanUp removes all buckets, and then the finalizer of Alive. A bucket without an object goes, too: a crash may have
// left it.
func (o *Operator) cleanUp(ctx context.Context) error {
	names, err := o.directories.all()
	if err != nil {
		return err
	}
	for _, name := range names {
		// The permission may have ended since the last step, and the cache may be stale.
		one, err := o.readAlive(ctx)
		if err != nil {
			return err
		}
		if !alive.CleanUp(one, time.Now()) {
			return nil // the next event of Alive brings the key back
		}
		if err := o.directories.remove(name); err != nil {
			return err
		}
		o.log.Printf("bucket %s is removed, because the cluster goes away", name)
	}
	if err := o.directories.close(); err != nil {
		return err
	}
	return alive.Done(ctx, o.client, Participant.Finalizer)
}

// readAlive reads Alive live. It is nil if there is none, or the kind is not served. A proxy answers as an API server that
// does not serve the kind: that is an error while the informer has an Alive, for no event would bring the key back.
func (o *Operator) readAlive(ctx context.Context) (*alive.Alive, error) {
	object, err := o.client.Resource(alive.Resource).Get(ctx, alive.Name, metav1.GetOptions{})
	switch {
	case apierrors.ReasonForError(err) == metav1.StatusReasonNotFound && (cached(o.alive, alive.Name) == nil ||
		!apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)): // permits nothing
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Alive: %w", err)
	}
	return alive.FromUnstructured(object)
}

// mayMake reports whether a new directory would be removed with the cluster: the operator is registered, or registers
// once there is an Alive.
func (o *Operator) mayMake(ctx context.Context) (bool, error) {
	if o.directories.isClosed() {
		return false, nil
	}
	one, err := o.readAlive(ctx)
	if err != nil || one == nil {
		return err == nil, err
	}
	return slices.Contains(one.Finalizers, Participant.Finalizer) && !alive.CleanUp(one, time.Now()), nil
}

// reconcileBucket observes, decides and executes one step. Its write brings the key back.
func (o *Operator) reconcileBucket(ctx context.Context, key string) error {
	bucket := cached(o.buckets, key)
	if bucket == nil {
		return nil
	}
	state, err := o.observe(ctx, bucket)
	if err != nil {
		return err
	}
	action := Decide(state)
	if action == Wait {
		return nil
	}
	live, err := o.confirm(ctx, key, bucket.GetUID())
	if err != nil || live == nil {
		return err
	}
	if state, err = o.observe(ctx, live); err != nil || Decide(state) != action {
		return err // the event of the change brings the key back
	}
	return o.execute(ctx, live, action)
}

func (o *Operator) observe(ctx context.Context, bucket *unstructured.Unstructured) (state State, err error) {
	directory, _, _ := unstructured.NestedString(bucket.Object, "status", "directory")
	state = State{Deleted: bucket.GetDeletionTimestamp() != nil, Made: directory != "",
		Finalizer: slices.Contains(bucket.GetFinalizers(), Finalizer)}
	if !state.Deleted && !state.Made {
		state.MayMake, err = o.mayMake(ctx)
	}
	return state, err
}

// confirm reads the Bucket live, nil if it is gone: nothing is removed because of what a cache says.
func (o *Operator) confirm(ctx context.Context, key string, uid types.UID) (*unstructured.Unstructured, error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return nil, err
	}
	get := func(ctx context.Context, name string, options metav1.GetOptions) (*unstructured.Unstructured, error) {
		return o.client.Resource(Resource).Namespace(namespace).Get(ctx, name, options)
	}
	live, exists, err := answer.Get(ctx, name, get)
	if err != nil || !exists || live.GetUID() != uid {
		return nil, err
	}
	return live, nil
}

func (o *Operator) execute(ctx context.Context, bucket *unstructured.Unstructured, action Action) error {
	uid, finalizers := bucket.GetUID(), bucket.GetFinalizers()
	switch action {
	case AddFinalizer:
		return o.patch(ctx, bucket, patch.ForVersion(bucket).Set("/metadata/finalizers", append(finalizers, Finalizer)))
	case Make:
		if err := o.directories.make(uid); err != nil {
			return err
		}
		return o.patch(ctx, bucket, patch.For(bucket).Set("/status", map[string]string{"directory": string(uid)}), "status")
	case Remove:
		if err := o.directories.remove(string(uid)); err != nil {
			return err
		}
		own := func(name string) bool { return name == Finalizer }
		return o.patch(ctx, bucket, patch.For(bucket).Test("/metadata/finalizers", finalizers).
			Set("/metadata/finalizers", slices.DeleteFunc(slices.Clone(finalizers), own)))
	case Wait:
	}
	return nil
}

func (o *Operator) patch(ctx context.Context, bucket *unstructured.Unstructured, change *patch.Patch,
	subresources ...string) error {
	body, err := change.Bytes()
	if err != nil {
		return err
	}
	_, err = o.client.Resource(Resource).Namespace(bucket.GetNamespace()).Patch(ctx, bucket.GetName(), types.JSONPatchType,
		body, metav1.PatchOptions{}, subresources...)
	return err
}
