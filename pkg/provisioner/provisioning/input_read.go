package provisioning

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// read reads one object from the API server; the zero value is one that does not
// exist.
func read[T any](ctx context.Context, what, name string, get func(context.Context, string, metav1.GetOptions) (T, error)) (T, error) {
	object, err := get(ctx, name, metav1.GetOptions{})
	var none T
	switch {
	case apierrors.IsNotFound(err):
		return none, nil
	case err != nil:
		return none, fmt.Errorf("read %s %s: %w", what, name, err)
	}
	return object, nil
}

// attributes reads the parameters of a VolumeAttributesClass, "" for none.
func (i *Inputs) attributes(ctx context.Context, name string) (map[string]string, error) {
	if name == "" {
		return nil, nil
	}
	class, err := read(ctx, "VolumeAttributesClass", name, i.Client.StorageV1().VolumeAttributesClasses().Get)
	if err != nil {
		return nil, err
	}
	return provision.Attributes(name, class, i.Driver.Name())
}

// credentials reads the secret that creating the volume needs, if there is one. It is
// read again for every call of the driver, and stored nowhere.
func (i *Inputs) credentials(ctx context.Context, in provision.Input) (provision.Credentials, *journal.Secret, error) {
	reference := in.Secrets.Provisioner
	if reference == nil {
		return provision.Credentials{}, nil, nil
	}
	what := "secret " + reference.Namespace + "/"
	values, uid, err := controller.ReadSecret(ctx, i.Client, reference.Namespace, reference.Name)
	switch {
	case apierrors.IsNotFound(err):
		return provision.Credentials{}, nil, &provision.NotYet{Sentence: fmt.Sprintf("The %s%s, which storage class %q names, does not exist", what, reference.Name, in.Class.Name)}
	case err != nil:
		return provision.Credentials{}, nil, fmt.Errorf("read %s%s, which storage class %q names: %w", what, reference.Name, in.Class.Name, err)
	}
	return provision.Conceal(values), &journal.Secret{Namespace: reference.Namespace, Name: reference.Name, UID: uid}, nil
}

// errFound ends a live list early.
var errFound = errors.New("found")

// someObject reports whether some object of a live list, read page by page, is as
// wanted.
func someObject[T any](ctx context.Context, list pager.ListPageFunc, wanted func(T) bool) (bool, error) {
	err := pager.New(list).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if typed, ok := object.(T); ok && wanted(typed) {
			return errFound
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFound) {
		return false, fmt.Errorf("list all objects: %w", err)
	}
	return err != nil, nil
}

// someVolume reports whether some PersistentVolume, read live, is as wanted.
func someVolume(ctx context.Context, client kubernetes.Interface, wanted func(*v1.PersistentVolume) bool) (bool, error) {
	return someObject(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().PersistentVolumes().List(ctx, options)
	}, wanted)
}

// someClaim reports whether some claim, read live, is as wanted.
func someClaim(ctx context.Context, client kubernetes.Interface, wanted func(*v1.PersistentVolumeClaim) bool) (bool, error) {
	return someObject(ctx, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, options)
	}, wanted)
}
