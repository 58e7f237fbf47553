package provisioning

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/controller"
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
// read anew for every call of the driver, and kept nowhere.
func (i *Inputs) credentials(ctx context.Context, in provision.Input) (provision.Credentials, error) {
	reference := in.Secrets.Provisioner
	if reference == nil {
		return provision.Credentials{}, nil
	}
	what := "secret " + reference.Namespace + "/"
	values, err := controller.ReadSecret(ctx, i.Client, reference.Namespace, reference.Name)
	switch {
	case apierrors.IsNotFound(err):
		return provision.Credentials{}, &provision.NotYet{Sentence: fmt.Sprintf("The %s%s, which storage class %q names, does not exist", what, reference.Name, in.Class.Name)}
	case err != nil:
		return provision.Credentials{}, fmt.Errorf("read %s%s, which storage class %q names: %w", what, reference.Name, in.Class.Name, err)
	}
	return provision.Conceal(values), nil
}
