package gracestorage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/cmd/kube-apiserver/internal/window"
)

// RESTOptionsGetter gives the storage of custom resources deadlines.
type RESTOptionsGetter struct {
	generic.RESTOptionsGetter
}

// GetRESTOptions returns the options with the codec of deletion windows, and the storage of this package.
func (g RESTOptionsGetter) GetRESTOptions(resource schema.GroupResource,
	example runtime.Object) (generic.RESTOptions, error) {
	options, err := g.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return options, err
	}
	options.StorageConfig.Codec = window.NewCodec(options.StorageConfig.Codec)
	options.Decorator = decorate(options.Decorator)
	return options, nil
}

// decorate returns a function that puts a Storage around the storage that next returns.
func decorate(next generic.StorageDecorator) generic.StorageDecorator {
	return func(
		config *storagebackend.ConfigForResource, prefix string, keyOf func(runtime.Object) (string, error), newObject,
		newList func() runtime.Object,
		attributesOf storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers,
	) (storage.Interface, factory.DestroyFunc, error) {
		inner, destroy, err := next(config, prefix, keyOf, newObject, newList, attributesOf, triggers, indexers)
		if err != nil {
			return inner, destroy, err
		}
		return &Storage{Interface: inner, resource: config.GroupResource, now: time.Now}, destroy, nil
	}
}

// Storage is the storage of one kind of custom resources.
type Storage struct {
	storage.Interface
	resource schema.GroupResource
	now      func() time.Time
}

// errLastFinalizer: the write removes the last finalizer of an object in its grace period.
var errLastFinalizer = errors.New("the last finalizer is removed")

// GuaranteedUpdate updates an object and decides on its deadline.
func (s *Storage) GuaranteedUpdate(
	ctx context.Context, key string, destination runtime.Object, ignoreNotFound bool,
	preconditions *storage.Preconditions, tryUpdate storage.UpdateFunc, cached runtime.Object,
) error {
	response, ok := destination.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("update %s: the response is no custom resource, but %T", key, destination)
	}
	for {
		write := &write{update: tryUpdate, holder: holderFrom(ctx), resource: s.resource, now: s.now}
		err := s.Interface.GuaranteedUpdate(ctx, key, destination, ignoreNotFound, preconditions, write.try, cached)
		if err == nil {
			write.report(ctx)
			return nil
		}
		if !errors.Is(err, errLastFinalizer) {
			return err
		}
		switch err := s.remove(ctx, key, write); {
		case err == nil || storage.IsNotFound(err): // another client removed a finalizer, too
			response.Object = write.after.Object // the object of the request, as at a stock API server
			return nil
		case !storage.IsInvalidObj(err):
			return err
		}
		// The object was changed meanwhile.
	}
}

// remove removes an object that lost its last finalizer, as the write read it.
func (s *Storage) remove(ctx context.Context, key string, write *write) error {
	preconditions := &storage.Preconditions{UID: &write.before.uid, ResourceVersion: &write.before.version}
	// Admission has passed for the update.
	return s.Interface.Delete(ctx, key, &unstructured.Unstructured{}, preconditions, rest.ValidateAllObjectFunc, nil,
		storage.DeleteOptions{})
}

// Delete removes an object that has no finalizers.
func (s *Storage) Delete(
	ctx context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	validate storage.ValidateObjectFunc, cached runtime.Object, options storage.DeleteOptions,
) error {
	if err := s.Interface.Delete(ctx, key, out, preconditions, validate, cached, options); err != nil {
		return err
	}
	removed, ok := out.(*unstructured.Unstructured)
	if !ok || options.IgnoreStoreReadError {
		return nil
	}
	reportRemoval(ctx, read(metadataOf(removed)))
	return nil
}
