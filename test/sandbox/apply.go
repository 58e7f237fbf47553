package sandbox

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"
)

// fieldManager owns the fields that Apply sets.
const fieldManager = "exeunt-sandbox"

// Apply applies every object in the .yaml files of manifests server-side, namespaces and
// custom resource definitions first.
func Apply(ctx context.Context, config *rest.Config, manifests fs.FS) error {
	objects, err := readManifests(manifests)
	if err != nil {
		return err
	}
	return applyAll(ctx, config, objects)
}

// ApplyYAML is Apply for the documents in text.
func ApplyYAML(ctx context.Context, config *rest.Config, text []byte) error {
	objects, err := parseManifest(text)
	if err != nil {
		return fmt.Errorf("parse manifest: %w", err)
	}
	return applyAll(ctx, config, objects)
}

// readManifests returns the objects in the .yaml files of manifests.
func readManifests(manifests fs.FS) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := fs.WalkDir(manifests, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}
		text, err := fs.ReadFile(manifests, name)
		if err != nil {
			return err
		}
		found, err := parseManifest(text)
		if err != nil {
			return fmt.Errorf("parse manifest %s: %w", name, err)
		}
		objects = append(objects, found...)
		return nil
	})
	return objects, err
}

// parseManifest returns the objects in the YAML documents of text.
func parseManifest(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, err
		}
		if len(object.Object) != 0 {
			objects = append(objects, object)
		}
	}
}

// applyAll applies objects in the order of rank.
func applyAll(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make dynamic client: %w", err)
	}
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make discovery client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovered))
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Compare(rank(a), rank(b))
	})
	for _, object := range objects {
		if err := apply(ctx, client, mapper, object); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// rank returns the position of an object in the order of dependencies.
func rank(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return 1
	}
	return 2
}

// apply applies one object.
func apply(ctx context.Context, client dynamic.Interface, mapper meta.RESTMapper,
	object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace := cmp.Or(object.GetNamespace(), metav1.NamespaceDefault)
		resource = client.Resource(mapping.Resource).Namespace(namespace)
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	_, err = resource.Apply(ctx, object.GetName(), object, options)
	return err
}
