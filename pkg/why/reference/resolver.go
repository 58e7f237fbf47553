package reference

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/exeunt-io/exeunt/internal/terminal"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

// Resolver finds objects by the words that name them.
type Resolver struct {
	// Namespace is the namespace of objects whose manifest names none.
	Namespace string
	// Enforced: the user chose the namespace, and manifests must not name another.
	Enforced bool

	mapper    meta.RESTMapper
	discovery discovery.CachedDiscoveryInterface
}

// NewResolver returns a Resolver for the kinds of the reader's cluster.
func NewResolver(reader *cluster.Reader, namespace string, enforced bool) *Resolver {
	return &Resolver{
		Namespace: namespace, Enforced: enforced, discovery: reader.Discovery(),
		mapper: restmapper.NewShortcutExpander(reader.Mapper(), reader.Discovery(), func(string) {}),
	}
}

// Words returns the objects that a command line names: KIND/NAME..., or KIND[,KIND] NAME...
func (r *Resolver) Words(words []string) ([]cluster.Ref, error) {
	withSlash := 0
	for _, word := range words {
		if strings.Contains(word, "/") {
			withSlash++
		}
	}
	switch {
	case withSlash == len(words):
		return r.each(words)
	case withSlash > 0:
		return nil, errors.New("name all objects as KIND/NAME, or give one KIND and its NAMEs: the two forms do not mix")
	case len(words) == 1:
		return nil, fmt.Errorf("which %s? give its name, as in %s/NAME", words[0], words[0])
	}
	var named []string
	for kind := range strings.SplitSeq(words[0], ",") {
		for _, name := range words[1:] {
			named = append(named, kind+"/"+name)
		}
	}
	return r.each(named)
}

// each returns the objects that the words KIND/NAME name.
func (r *Resolver) each(words []string) ([]cluster.Ref, error) {
	var all []cluster.Ref
	for _, word := range words {
		kind, name, _ := strings.Cut(word, "/")
		if kind == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("%q does not name an object, want KIND/NAME", word)
		}
		mapping, err := r.Mapping(kind)
		if err != nil {
			return nil, err
		}
		all = append(all, r.ref(mapping, r.Namespace, name))
	}
	return all, nil
}

func (r *Resolver) ref(mapping *meta.RESTMapping, namespace, name string) cluster.Ref {
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		namespace = ""
	}
	return cluster.Ref{Resource: mapping.Resource, Kind: mapping.GroupVersionKind.Kind, Namespace: namespace, Name: name}
}

// Mapping returns the kind that the word names.
func (r *Resolver) Mapping(word string) (*meta.RESTMapping, error) {
	versioned, resource := schema.ParseResourceArg(word)
	var gvk schema.GroupVersionKind
	var err error
	if versioned != nil {
		gvk, err = r.mapper.KindFor(*versioned)
	}
	if gvk.Empty() {
		gvk, err = r.mapper.KindFor(resource.WithVersion(""))
	}
	if err == nil {
		return r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if mapping, found := r.byKind(word); found {
		return mapping, nil
	}
	if !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("find kind %q: %w", word, err)
	}
	return nil, r.unknown(word)
}

// byKind returns the mapping of a word Kind.version.group or Kind.group, as kubectl takes
// them where a resource name is not known.
func (r *Resolver) byKind(word string) (*meta.RESTMapping, bool) {
	versioned, kind := schema.ParseKindArg(word)
	if versioned != nil {
		if mapping, err := r.mapper.RESTMapping(versioned.GroupKind(), versioned.Version); err == nil {
			return mapping, true
		}
	}
	mapping, err := r.mapper.RESTMapping(kind)
	return mapping, err == nil
}

// unknown returns the error for a kind that the API server does not serve.
func (r *Resolver) unknown(word string) error {
	names, err := r.kinds()
	if meant := terminal.Closest(word, names); meant != "" {
		return fmt.Errorf("the API server serves no kind %q, did you mean %s?", word, meant)
	}
	if err != nil {
		return fmt.Errorf("no kind %q was seen, but not all groups of the API answered: %w", word, err)
	}
	return fmt.Errorf("the API server serves no kind %q; kubectl api-resources lists all", word)
}

// kinds returns the names under which kinds are known, and an error if some were not seen.
func (r *Resolver) kinds() ([]string, error) {
	_, lists, err := r.discovery.ServerGroupsAndResources()
	var names []string
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") {
				names = append(append(names, resource.Name, resource.SingularName), resource.ShortNames...)
			}
		}
	}
	return names, err
}
