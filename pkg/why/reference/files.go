package reference

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// UnservedError names the kinds of manifests that the API server does not serve.
type UnservedError struct{ kinds []error }

func (e *UnservedError) Error() string { return errors.Join(e.kinds...).Error() }

// Read returns the objects that a file names: manifests in YAML or JSON, several documents,
// lists, or lines KIND/NAME as "kubectl get -o name" prints them. With an [UnservedError] it
// returns the objects of the other kinds.
func (r *Resolver) Read(in io.Reader) ([]cluster.Ref, error) {
	var all []cluster.Ref
	documents := yaml.NewYAMLReader(bufio.NewReader(in))
	f := &file{Resolver: r, missed: map[schema.GroupKind]bool{}}
	for f.number = 1; ; f.number++ {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var found []cluster.Ref
		if err == nil {
			found, err = f.document(bytes.TrimSpace(text))
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", f.number, err)
		}
		all = append(all, found...)
	}
	if len(f.unserved) > 0 {
		return all, &UnservedError{f.unserved}
	}
	return all, nil
}

// file is a file that is read.
type file struct {
	*Resolver
	number   int // of the document
	missed   map[schema.GroupKind]bool
	unserved []error // for each kind that is missed
}

// document returns the objects of one document.
func (f *file) document(text []byte) ([]cluster.Ref, error) {
	if bytes.HasPrefix(text, []byte("{")) {
		return f.stream(json.NewDecoder(bytes.NewReader(text)))
	}
	if words, areNames := names(text); areNames {
		return f.each(words)
	}
	encoded, err := yaml.ToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("read YAML: %w", err)
	}
	if string(encoded) == "null" { // comments only
		return nil, nil
	}
	return f.stream(json.NewDecoder(bytes.NewReader(encoded)))
}

// names returns the lines of the text, and true if all are of the form KIND/NAME.
func names(text []byte) ([]string, bool) {
	var words []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if line == "" || line == "---" {
			continue
		}
		if strings.ContainsAny(line, " \t") || strings.HasSuffix(line, ":") || !strings.Contains(line, "/") {
			return nil, false
		}
		words = append(words, line)
	}
	return words, true
}

// stream returns the objects of JSON documents that follow each other.
func (f *file) stream(documents *json.Decoder) ([]cluster.Ref, error) {
	var all []cluster.Ref
	for {
		var object map[string]any
		err := documents.Decode(&object)
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case errors.As(err, new(*json.UnmarshalTypeError)):
			return nil, errors.New("there is neither a manifest nor lines KIND/NAME")
		case err != nil:
			return nil, fmt.Errorf("read JSON: %w", err)
		}
		found, err := f.manifest(object)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
}

// manifest returns the object, or the items of a list.
func (f *file) manifest(content map[string]any) ([]cluster.Ref, error) {
	object := &unstructured.Unstructured{Object: content}
	if object.IsList() {
		return f.items(object)
	}
	gvk := object.GroupVersionKind()
	switch {
	case gvk.Kind == "" || gvk.Version == "":
		return nil, errors.New("a manifest has no apiVersion or no kind")
	case object.GetName() == "":
		return nil, fmt.Errorf("a manifest of kind %s has no name", gvk.Kind)
	case f.Enforced && object.GetNamespace() != "" && object.GetNamespace() != f.Namespace:
		return nil, fmt.Errorf("%s %s is in namespace %s, and --namespace is %s", gvk.Kind, object.GetName(),
			object.GetNamespace(), f.Namespace)
	}
	mapping, err := f.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) { // an older version of the kind
		mapping, err = f.mapper.RESTMapping(gvk.GroupKind())
	}
	if meta.IsNoMatchError(err) {
		f.miss(gvk.GroupKind())
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find kind %s: %w", gvk.Kind, err)
	}
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = f.Namespace
	}
	return []cluster.Ref{f.ref(mapping, namespace, object.GetName())}, nil
}

// miss notes that the API server does not serve the kind.
func (f *file) miss(kind schema.GroupKind) {
	if !f.missed[kind] {
		f.missed[kind] = true
		f.unserved = append(f.unserved, fmt.Errorf("document %d: %w", f.number, f.unknown(kind.Kind)))
	}
}

func (f *file) items(list *unstructured.Unstructured) ([]cluster.Ref, error) {
	var all []cluster.Ref
	err := list.EachListItem(func(item runtime.Object) error {
		object := item.(*unstructured.Unstructured)
		if object.GetKind() == "" { // a typed list of the API server names the kind once
			object.SetAPIVersion(list.GetAPIVersion())
			object.SetKind(strings.TrimSuffix(list.GetKind(), "List"))
		}
		found, err := f.manifest(object.Object)
		all = append(all, found...)
		return err
	})
	return all, err
}
