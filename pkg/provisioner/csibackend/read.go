package csibackend

import (
	"context"
	"fmt"

	"github.com/exeunt-io/exeunt/pkg/controller"
	"github.com/exeunt-io/exeunt/pkg/journal"
	"github.com/exeunt-io/exeunt/pkg/provision"
)

// attributes reads the parameters of a VolumeAttributesClass, "" for none.
func (i *Inputs) attributes(ctx context.Context, name string) (map[string]string, error) {
	if name == "" {
		return nil, nil
	}
	class, err := controller.ReadLive(ctx, "VolumeAttributesClass", name, i.Client.StorageV1().VolumeAttributesClasses().Get)
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
	values, uid, err := readSecret(ctx, i.Client, reference.Namespace, reference.Name)
	switch {
	case err != nil:
		return provision.Credentials{}, nil, fmt.Errorf("read %s%s, which storage class %q names: %w", what, reference.Name, in.Class.Name, err)
	case values == nil:
		return provision.Credentials{}, nil, &provision.NotReady{Sentence: fmt.Sprintf("The %s%s, which storage class %q names, does not exist", what, reference.Name, in.Class.Name)}
	}
	return provision.Conceal(values), &journal.Secret{Namespace: reference.Namespace, Name: reference.Name, UID: uid}, nil
}
