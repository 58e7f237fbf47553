package gracestorage

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/exeunt-io/exeunt/cmd/kube-apiserver/internal/window"
)

// memory is the storage of one object: what etcd holds, in the form of etcd.
type memory struct {
	storage.Interface
	data    []byte // nil: absent
	version int
	// disturb runs before a removal, as another client.
	disturb func()
	// failure is the error of a removal.
	failure error
}

var codec = window.NewCodec(runtime.NewCodec(unstructured.UnstructuredJSONScheme, unstructured.UnstructuredJSONScheme))

func (m *memory) read(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	object, _, err := codec.Decode(m.data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	found, _ := object.(*unstructured.Unstructured)
	found.SetResourceVersion(fmt.Sprint(m.version))
	return found
}

func (m *memory) write(object *unstructured.Unstructured) error {
	object = object.DeepCopy()
	object.SetResourceVersion("")
	var data bytes.Buffer
	if err := codec.Encode(object, &data); err != nil {
		return err
	}
	if !bytes.Equal(data.Bytes(), m.data) {
		m.data, m.version = data.Bytes(), m.version+1
	}
	return nil
}

func (m *memory) GuaranteedUpdate(_ context.Context, key string, destination runtime.Object, _ bool,
	_ *storage.Preconditions, update storage.UpdateFunc, _ runtime.Object) error {
	if m.data == nil {
		return storage.NewKeyNotFoundError(key, 0)
	}
	existing, _, err := codec.Decode(m.data, nil, nil)
	if err != nil {
		return err
	}
	object, _ := existing.(*unstructured.Unstructured)
	object.SetResourceVersion(fmt.Sprint(m.version))
	updated, _, err := update(object, storage.ResponseMeta{})
	if err != nil {
		return err
	}
	written, _ := updated.(*unstructured.Unstructured)
	if err := m.write(written); err != nil {
		return err
	}
	_, _, err = codec.Decode(m.data, nil, destination)
	return err
}

func (m *memory) Delete(_ context.Context, key string, out runtime.Object, preconditions *storage.Preconditions,
	_ storage.ValidateObjectFunc, _ runtime.Object, _ storage.DeleteOptions) error {
	if m.disturb != nil {
		disturb := m.disturb
		m.disturb = nil
		disturb()
	}
	if m.failure != nil {
		return m.failure
	}
	if m.data == nil {
		return storage.NewKeyNotFoundError(key, 0)
	}
	object, _, err := codec.Decode(m.data, nil, nil)
	if err != nil {
		return err
	}
	found, _ := object.(*unstructured.Unstructured)
	found.SetResourceVersion(fmt.Sprint(m.version))
	if err := preconditions.Check(key, found); err != nil {
		return err
	}
	if result, ok := out.(*unstructured.Unstructured); ok {
		result.Object = found.Object
	}
	m.data = nil
	return nil
}
