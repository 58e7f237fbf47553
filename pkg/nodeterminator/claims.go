package nodeterminator

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/exeunt-io/exeunt/pkg/deadline"
	"github.com/exeunt-io/exeunt/pkg/termination"
)

const (
	// karpenterFinalizer is on each Node that Karpenter terminates, karpenterPool is the label of its nodes.
	karpenterFinalizer = "karpenter.sh/termination"
	karpenterPool      = "karpenter.sh/nodepool"
	// definitionName is the name of the CustomResourceDefinition of NodeClaims.
	definitionName = "nodeclaims.karpenter.sh"
)

var (
	claimResource      = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
	definitionResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
)

// Claims are the NodeClaims of the cluster. They are watched while their definition exists: a watch of this one
// definition shows when it is installed, without a poll. A nil Claims has none.
type Claims struct {
	client      dynamic.NamespaceableResourceInterface
	definitions metadata.Interface
	changed     func(node string)

	mu sync.Mutex
	// known: it is known whether the definition exists.
	known bool
	// informer has the claims, nil without the definition. End ends it.
	informer cache.SharedIndexInformer
	synced   func() bool
	end      context.CancelFunc
	// failed: the last list or watch of claims failed.
	failed bool
}

// NewClaims returns the claims. The definitions are read by their metadata.
func NewClaims(client dynamic.Interface, definitions metadata.Interface) *Claims {
	return &Claims{client: client.Resource(claimResource), definitions: definitions, changed: func(string) {}}
}

// onChange has the function called with the name of each node that a claim concerns, and with "" for all.
func (c *Claims) onChange(changed func(node string)) {
	if c != nil {
		c.changed = changed
	}
}

// start watches the definition of claims until the context ends.
func (c *Claims) start(ctx context.Context) {
	if c == nil {
		return
	}
	client := c.definitions.Resource(definitionResource)
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, definitionName).String()
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = selector
			return client.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = selector
			return client.Watch(ctx, options)
		},
	}, c.definitions)
	informer := cache.NewSharedIndexInformer(source, &metav1.PartialObjectMetadata{}, 0, cache.Indexers{})
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.defined(ctx) },
		DeleteFunc: func(any) { c.undefined() },
	})
	if err != nil { // the informer has not started, so it takes each handler
		panic(err)
	}
	go informer.RunWithContext(ctx)
	go func() {
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			c.mu.Lock()
			c.known = true
			c.mu.Unlock()
			c.changed("")
		}
	}()
}

// defined begins to watch claims.
func (c *Claims) defined(ctx context.Context) {
	watching, end := context.WithCancel(ctx)
	note := func(err error) {
		if watching.Err() == nil { // not the last answer to a watch that was ended
			c.note(err)
		}
	}
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := c.client.List(ctx, options)
			note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			watched, err := c.client.Watch(ctx, options)
			note(err)
			return watched, err
		},
	}, c.client)
	informer := cache.NewSharedIndexInformer(source, &unstructured.Unstructured{}, 0, claimIndexers)
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: c.concern,
		UpdateFunc: func(old, now any) { c.concern(old); c.concern(now) }, DeleteFunc: c.concern})
	if err != nil { // the informer has not started, so it takes each handler
		panic(err)
	}
	c.mu.Lock()
	c.informer, c.synced, c.end, c.failed = informer, informer.HasSynced, end, false
	c.mu.Unlock()
	go informer.RunWithContext(watching)
	go func() {
		if cache.WaitForCacheSync(watching.Done(), registration.HasSynced) {
			c.changed("")
		}
	}()
}

// concern names the nodes that a claim concerns.
func (c *Claims) concern(object any) {
	if tombstone, missed := object.(cache.DeletedFinalStateUnknown); missed {
		object = tombstone.Obj
	}
	if claim := claimFrom(object); claim != nil {
		for _, name := range []string{claim.GetName(), claim.node()} {
			if name != "" { // "" is all nodes
				c.changed(name)
			}
		}
	}
}

// undefined ends the watch of claims.
func (c *Claims) undefined() {
	c.mu.Lock()
	if c.end != nil {
		c.end()
	}
	c.informer, c.end, c.failed = nil, nil, false
	c.mu.Unlock()
	c.changed("")
}

// note records whether claims can be read.
func (c *Claims) note(err error) {
	c.mu.Lock()
	changed := c.failed != (err != nil)
	c.failed = err != nil
	c.mu.Unlock()
	if changed {
		c.changed("")
	}
}

// unreadable reports whether it is not known which claims exist.
func (c *Claims) unreadable() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.known || c.informer != nil && (c.failed || !c.synced())
}

// claimIndexers find claims of others by the name and the providerID of their node, and claims of ours that are being
// terminated.
var claimIndexers = cache.Indexers{
	byNode:        indexOthers((*claim).node),
	byProviderID:  indexOthers((*claim).providerID),
	byTerminating: indexTerminatingClaim,
}

// indexOthers indexes claims that are not ours by a text, unless it is empty.
func indexOthers(text func(*claim) string) cache.IndexFunc {
	return func(object any) ([]string, error) {
		if one := claimFrom(object); one != nil && !one.isOurs() && text(one) != "" {
			return []string{text(one)}, nil
		}
		return nil, nil
	}
}

func indexTerminatingClaim(object any) ([]string, error) {
	if one := claimFrom(object); one != nil && one.isTerminating() {
		return []string{hasIt}, nil
	}
	return nil, nil
}

// find returns the claims that the index has under the value, none under "".
func (c *Claims) find(index, value string) []*claim {
	if c == nil || value == "" {
		return nil
	}
	c.mu.Lock()
	informer := c.informer
	c.mu.Unlock()
	if informer == nil {
		return nil
	}
	var found []*claim
	for _, one := range byIndex[*unstructured.Unstructured](informer, index, value) {
		found = append(found, &claim{one})
	}
	return found
}

// terminating returns the claims of ours that keep their nodes while both end.
func (c *Claims) terminating() []*claim { return c.find(byTerminating, hasIt) }

// named returns the claim of ours with the name, nil if there is none.
func (c *Claims) named(name string) *claim {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	informer := c.informer
	c.mu.Unlock()
	if informer == nil {
		return nil
	}
	object, exists, err := informer.GetStore().GetByKey(name)
	if one := claimFrom(object); err == nil && exists && one != nil && one.isOurs() {
		return one
	}
	return nil
}

// of returns the claim of ours for the node, nil if there is none, and whether the node is another program's.
func (c *Claims) of(n *v1.Node) (own *claim, others bool) {
	if _, pooled := n.Labels[karpenterPool]; pooled || slices.Contains(n.Finalizers, karpenterFinalizer) {
		return nil, true
	}
	if len(c.find(byNode, n.Name)) > 0 || len(c.find(byProviderID, n.Spec.ProviderID)) > 0 {
		return nil, true
	}
	if one := c.named(n.Name); one != nil && one.mismatch(n) == "" {
		return one, false
	}
	return nil, false
}

// liveTerminating reads which nodes of ours are being terminated, by Nodes and claims, and counts what terminatingLocked
// counts. A Node whose label was removed after its deletion is among them.
func (c *Claims) liveTerminating(ctx context.Context) (sets.Set[string], error) {
	found, protected := sets.New[string](), sets.New[string]()
	options := metav1.ListOptions{Limit: 500}
	for more := true; more; more = options.Continue != "" {
		list, err := c.definitions.Resource(v1.SchemeGroupVersion.WithResource("nodes")).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		for i := range list.Items {
			n := &list.Items[i]
			if !termination.Protected(n) {
				continue
			}
			if protected.Insert(n.Name); n.DeletionTimestamp != nil {
				found.Insert(n.Name)
			}
		}
		options.Continue = list.Continue
	}
	options = metav1.ListOptions{Limit: 500}
	for more := true; more; more = options.Continue != "" {
		list, err := c.client.List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list NodeClaims: %w", err)
		}
		for i := range list.Items {
			if one := (&claim{&list.Items[i]}); one.isTerminating() && protected.Has(one.GetName()) {
				found.Insert(one.GetName())
			}
		}
		options.Continue = list.GetContinue()
	}
	return found, nil
}

// claim is a NodeClaim.
type claim struct{ *unstructured.Unstructured }

func claimFrom(object any) *claim {
	if one, is := object.(*unstructured.Unstructured); is {
		return &claim{one}
	}
	return nil
}

func (c *claim) text(path ...string) string {
	text, _, err := unstructured.NestedString(c.Object, path...)
	if err != nil { // a field of another type
		return ""
	}
	return text
}

func (c *claim) node() string       { return c.text("status", "nodeName") }
func (c *claim) providerID() string { return c.text("status", "providerID") }
func (c *claim) isOurs() bool {
	return c.text("spec", "nodeClassRef", "group") == termination.ClaimGroup
}
func (c *claim) deleting() bool       { return c.GetDeletionTimestamp() != nil }
func (c *claim) requested() time.Time { return termination.Requested(c) }

// period returns T, which is no typed field: one claim with a text that cannot be read must not stop the others.
func (c *claim) period() (deadline.Period, error) {
	value, exists, err := unstructured.NestedFieldNoCopy(c.Object, "spec", "terminationGracePeriod")
	if err != nil || !exists || value == nil {
		return deadline.Period{}, nil
	}
	text, isText := value.(string)
	if !isText {
		return deadline.Period{}, errPeriodType
	}
	return deadline.ParsePeriod(text)
}

// mismatch returns why the claim is not the node's, "" if it is. A node that registered after the deletion of the claim
// is another one.
func (c *claim) mismatch(n *v1.Node) string {
	switch {
	case n == nil:
		return "there is no Node with the name of the claim"
	case c.deleting() && !n.CreationTimestamp.Time.Before(c.requested()):
		return "the Node is younger than the deletion of the claim"
	case c.providerID() != "" && c.providerID() != n.Spec.ProviderID:
		return "the Node has another providerID"
	}
	if _, labeled := n.Labels[termination.Label]; !labeled && n.DeletionTimestamp == nil {
		return "the Node lacks the label " + termination.Label + ": a claim alone is no consent"
	}
	return ""
}
