package provisioning

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

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

// page is how many objects one request of a live list returns.
const page = 500

// someVolume reports whether some PersistentVolume, read live, is as wanted.
func someVolume(ctx context.Context, client kubernetes.Interface, wanted func(*v1.PersistentVolume) bool) (bool, error) {
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := client.CoreV1().PersistentVolumes().List(ctx, options)
		if err != nil {
			return false, fmt.Errorf("list volumes: %w", err)
		}
		for i := range list.Items {
			if wanted(&list.Items[i]) {
				return true, nil
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return false, nil
		}
	}
}

// someClaim reports whether some claim, read live, is as wanted.
func someClaim(ctx context.Context, client kubernetes.Interface, wanted func(*v1.PersistentVolumeClaim) bool) (bool, error) {
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return false, fmt.Errorf("list claims: %w", err)
		}
		for i := range list.Items {
			if wanted(&list.Items[i]) {
				return true, nil
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return false, nil
		}
	}
}
