package runner

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"github.com/exeunt-io/exeunt/internal/answer"
	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
)

// source is one kind of objects.
type source struct {
	name    string
	example runtime.Object
	fields  string
	list    func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch   func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// lists is a typed list with its version.
type lists interface {
	runtime.Object
	metav1.ListInterface
}

func kind[L lists](name string, example runtime.Object, list func(context.Context, metav1.ListOptions) (L, error),
	watcher func(context.Context, metav1.ListOptions) (watch.Interface, error)) source {
	return source{name: name, example: example, watch: watcher,
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			found, err := answer.CheckedList(list(ctx, options))
			if err != nil { // not a nil list in an interface
				return nil, err
			}
			return found, nil
		}}
}

// id tells the source from others.
func (s source) id() string { return s.name + " " + s.fields }

// only restricts the source to what the field selector matches.
func (s source) only(fields string) source {
	s.fields = fields
	return s
}

// servedElsewhere are kinds that not every cluster serves.
var servedElsewhere = []schema.GroupResource{
	{Group: "gateway.networking.k8s.io", Resource: "gateways"},
	{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshots"},
	{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshotcontents"},
	{Group: "apiregistration.k8s.io", Resource: "apiservices"},
}

// custom returns the kinds of servedElsewhere that the API server serves, each in one version.
func (c *Config) custom(ctx context.Context) ([]source, error) {
	groups, err := c.Objects.Discovery().ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its groups: %w", err)
	}
	var all []source
	for _, wanted := range servedElsewhere {
		resource, served, err := c.servedAs(wanted, groups.Groups)
		switch {
		case err != nil:
			return nil, err
		case served:
			objects := c.Dynamic.Resource(resource)
			all = append(all, kind(resource.Resource, &unstructured.Unstructured{}, objects.List, objects.Watch))
		default:
			if err := c.checkUndefined(ctx, wanted); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// servedAs returns the resource in the version that its group prefers, else in another one, and reports whether it is
// served. A 404 for a version that the list of groups has is an error: it is of a proxy, or of an API server that has just
// started.
func (c *Config) servedAs(wanted schema.GroupResource, groups []metav1.APIGroup) (schema.GroupVersionResource, bool, error) {
	i := slices.IndexFunc(groups, func(group metav1.APIGroup) bool { return group.Name == wanted.Group })
	if i < 0 {
		return schema.GroupVersionResource{}, false, nil
	}
	others := slices.DeleteFunc(slices.Clone(groups[i].Versions),
		func(v metav1.GroupVersionForDiscovery) bool { return v == groups[i].PreferredVersion })
	for _, version := range slices.Concat([]metav1.GroupVersionForDiscovery{groups[i].PreferredVersion}, others) {
		resource := wanted.WithVersion(version.Version)
		found, err := c.Objects.Discovery().ServerResourcesForGroupVersion(resource.GroupVersion().String())
		if err != nil {
			return resource, false, fmt.Errorf("ask the API server whether %s is served: %w", wanted, err)
		}
		if slices.ContainsFunc(found.APIResources, func(r metav1.APIResource) bool { return r.Name == wanted.Resource }) {
			return resource, true, nil
		}
	}
	return schema.GroupVersionResource{}, false, nil
}

// checkUndefined returns an error unless a kind that is not served has no CRD: an API server that has just started may not
// serve it yet (#62), and the disks below kept snapshots that nobody has read would be deleted (#08).
func (c *Config) checkUndefined(ctx context.Context, wanted schema.GroupResource) error {
	_, defined, err := answer.Get(ctx, wanted.String(), c.get(definitions))
	switch {
	case err != nil:
		return fmt.Errorf("read the CRD of %s, which is not served: %w", wanted, err)
	case defined:
		return fmt.Errorf("%s has a CRD, and is not served", wanted)
	}
	return nil
}

// sources returns the kinds that an inventory needs, as far as the API server serves them.
func (c *Config) sources(ctx context.Context) ([]source, error) {
	core, admission := c.Objects.CoreV1(), c.Objects.AdmissionregistrationV1()
	all := []source{
		kind("namespaces", &v1.Namespace{}, core.Namespaces().List, core.Namespaces().Watch),
		kind("persistentvolumes", &v1.PersistentVolume{}, core.PersistentVolumes().List, core.PersistentVolumes().Watch),
		kind("persistentvolumeclaims", &v1.PersistentVolumeClaim{}, core.PersistentVolumeClaims("").List,
			core.PersistentVolumeClaims("").Watch),
		kind("pods", &v1.Pod{}, core.Pods("").List, core.Pods("").Watch),
		kind("services", &v1.Service{}, core.Services("").List, core.Services("").Watch),
		kind("ingresses", &networkingv1.Ingress{}, c.Objects.NetworkingV1().Ingresses("").List,
			c.Objects.NetworkingV1().Ingresses("").Watch),
		kind("volumeattachments", &storagev1.VolumeAttachment{}, c.Objects.StorageV1().VolumeAttachments().List,
			c.Objects.StorageV1().VolumeAttachments().Watch),
		kind("storageclasses", &storagev1.StorageClass{}, c.Objects.StorageV1().StorageClasses().List,
			c.Objects.StorageV1().StorageClasses().Watch),
		kind("csidrivers", &storagev1.CSIDriver{}, c.Objects.StorageV1().CSIDrivers().List,
			c.Objects.StorageV1().CSIDrivers().Watch),
		kind("leases", &coordinationv1.Lease{}, c.Objects.CoordinationV1().Leases("").List,
			c.Objects.CoordinationV1().Leases("").Watch),
		kind("validatingwebhookconfigurations", &admissionv1.ValidatingWebhookConfiguration{},
			admission.ValidatingWebhookConfigurations().List, admission.ValidatingWebhookConfigurations().Watch),
		kind("mutatingwebhookconfigurations", &admissionv1.MutatingWebhookConfiguration{},
			admission.MutatingWebhookConfigurations().List, admission.MutatingWebhookConfigurations().Watch),
	}
	for _, reason := range inventory.ProvisioningEvents {
		all = append(all, kind("events", &v1.Event{}, core.Events("").List, core.Events("").Watch).
			only("reason="+reason+",involvedObject.kind=PersistentVolumeClaim"))
	}
	custom, err := c.custom(ctx)
	return append(all, custom...), err
}

// eachListed reads all objects of the source in pages.
func (s source) eachListed(ctx context.Context, visit func(object any)) error {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return s.list(ctx, options)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{FieldSelector: s.fields}, func(object runtime.Object) error {
		visit(object)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list %s: %w", s.name, err)
	}
	return nil
}

// follow feeds the objects of the source to the feed until the context ends.
func (s source) follow(ctx context.Context, client any, f *feed) {
	selected := func(options metav1.ListOptions) metav1.ListOptions {
		options.FieldSelector = s.fields
		return options
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return s.list(ctx, selected(options))
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return s.watch(ctx, selected(options))
		},
	}
	backoff := &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 6, Cap: 30 * time.Second}
	cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, client), s.example, f,
		cache.ReflectorOptions{Name: "teardown " + s.name, Backoff: backoff}).RunWithContext(ctx)
}

// feed is the store of a reflector. It passes objects on, and remembers only their identities.
type feed struct {
	// change runs a function under the lock of its owner, which is notified if the function returns true.
	change func(func() bool)
	// set takes an object, and reports whether a decision may change.
	set    func(object any) bool
	remove func(object any)
	// done is called when a list is complete; it may be nil.
	done func()
	// known are the identities of the objects, by UID.
	known map[types.UID]any
}

func newFeed(change func(func() bool), set func(object any) bool, remove func(object any)) *feed {
	return &feed{change: change, set: set, remove: remove, known: map[types.UID]any{}}
}

// Add takes a new object.
func (f *feed) Add(object any) error { return f.Update(object) }

// Update takes a changed object.
func (f *feed) Update(object any) error {
	f.change(func() bool { return f.see(object) })
	return nil
}

// Delete takes the last state of an object that is gone.
func (f *feed) Delete(object any) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	f.change(func() bool {
		delete(f.known, accessor.GetUID())
		f.remove(object)
		return true
	})
	return nil
}

// Replace takes all objects.
func (f *feed) Replace(objects []any, _ string) error {
	f.change(func() bool {
		f.removeAbsent(objects)
		for _, object := range objects {
			f.see(object)
		}
		if f.done != nil {
			f.done()
		}
		return true
	})
	return nil
}

// removeAbsent removes what is not in the list. It comes first: an object may have been made again under the same name.
func (f *feed) removeAbsent(objects []any) {
	present := make(map[types.UID]bool, len(objects))
	for _, object := range objects {
		if accessor, err := meta.Accessor(object); err == nil {
			present[accessor.GetUID()] = true
		}
	}
	for uid, object := range f.known {
		if !present[uid] {
			delete(f.known, uid)
			f.remove(object)
		}
	}
}

// Resync does nothing.
func (*feed) Resync() error { return nil }

func (f *feed) see(object any) bool {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return false
	}
	if _, known := f.known[accessor.GetUID()]; !known {
		f.known[accessor.GetUID()] = identityOf(object, accessor)
	}
	return f.set(object)
}

// identityOf returns an object of the same type with nothing but its names.
func identityOf(object any, accessor metav1.Object) any {
	if content, is := object.(*unstructured.Unstructured); is {
		identity := &unstructured.Unstructured{}
		identity.SetGroupVersionKind(content.GroupVersionKind())
		identity.SetNamespace(accessor.GetNamespace())
		identity.SetName(accessor.GetName())
		identity.SetUID(accessor.GetUID())
		return identity
	}
	identity := reflect.New(reflect.TypeOf(object).Elem()).Interface()
	if of, is := identity.(metav1.Object); is {
		of.SetNamespace(accessor.GetNamespace())
		of.SetName(accessor.GetName())
		of.SetUID(accessor.GetUID())
	}
	return identity
}
