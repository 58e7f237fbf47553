package plan

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

const (
	snapshotGroup = "snapshot.storage.k8s.io"
	gatewayGroup  = "gateway.networking.k8s.io"
)

// fill fills the inventory from paged lists.
func (s *survey) fill(ctx context.Context, lists *cluster.Reader) {
	set(ctx, s, lists, cluster.Namespaces, "Namespace", s.seeNamespace)
	set(ctx, s, lists, cluster.PersistentVolumeClaims, "PersistentVolumeClaim", nil)
	set(ctx, s, lists, cluster.PersistentVolumes, "PersistentVolume", nil)
	set(ctx, s, lists, cluster.Pods, "", s.seePod)
	set(ctx, s, lists, cluster.Services, "Service", func(o *v1.Service) { s.seeService(o) })
	set(ctx, s, lists, cluster.Ingresses, "Ingress", func(o *networkingv1.Ingress) { s.seeIngress(o) })
	set(ctx, s, lists, cluster.StorageClasses, "", nil)
	set(ctx, s, lists, cluster.CSIDrivers, "", nil)
	set(ctx, s, lists, cluster.VolumeAttachments, "", nil)
	set(ctx, s, lists, cluster.Leases, "", nil)
	set(ctx, s, lists, cluster.ValidatingWebhookConfigurations, "", nil)
	set(ctx, s, lists, cluster.MutatingWebhookConfigurations, "", nil)
	for _, reason := range inventory.ProvisioningEvents {
		cluster.Each(ctx, lists, cluster.Events, cluster.Selection{
			Fields: "involvedObject.kind=PersistentVolumeClaim,reason=" + reason}, func(page []v1.Event) {
			for i := range page {
				s.inventory.Set(&page[i])
			}
		})
	}
	s.setCustom(ctx, lists)
	set(ctx, s, lists, cluster.Nodes, "", s.seeNode)
}

// set lists a kind into the inventory. kind is that of targets to preserve, "" if there are none.
func set[T any](ctx context.Context, s *survey, r *cluster.Reader, of cluster.Kind[T], kind string, see func(*T)) {
	cluster.Each(ctx, r, of, cluster.Selection{}, func(page []T) {
		for i := range page {
			if object, is := any(&page[i]).(metav1.Object); is && kind != "" {
				s.preserve(kind, object)
			}
			if see != nil {
				see(&page[i])
			}
			s.inventory.Set(&page[i])
		}
	})
}

// setCustom lists the kinds that a cluster may lack.
func (s *survey) setCustom(ctx context.Context, r *cluster.Reader) {
	served, _ := r.ServedIn(snapshotGroup, gatewayGroup, "apiregistration.k8s.io")
	for _, resource := range served {
		switch resource.Kind {
		case "VolumeSnapshot", "VolumeSnapshotContent", "Gateway", "APIService":
		default:
			continue
		}
		r.EachObject(ctx, resource.GroupVersionResource, "", func(page []unstructured.Unstructured) {
			for i := range page {
				s.preserve(resource.Kind, &page[i])
				if resource.Kind == "Gateway" {
					s.seeGateway(&page[i])
				}
				s.inventory.Set(&page[i])
			}
		})
	}
}

// preserve sets the label on an object that a person wants to keep, as read.
func (s *survey) preserve(kind string, object metav1.Object) {
	target := Target{kind, object.GetNamespace(), object.GetName()}
	if !s.wanted[target] {
		return
	}
	s.found[target] = true
	labels := map[string]string{inventory.PreserveLabel: "true"}
	maps.Copy(labels, object.GetLabels())
	object.SetLabels(labels)
}

// seeNamespace finds the namespaces that go last.
func (s *survey) seeNamespace(n *v1.Namespace) {
	if slices.Contains(s.Last, n.Name) {
		s.found[Target{Kind: "Namespace", Name: n.Name}] = true
	}
}

// seeNode counts the nodes, and finds who made their machines.
func (s *survey) seeNode(node *v1.Node) {
	s.plan.Cluster.Nodes++
	if isReady(node) {
		s.ready++
	}
	for _, p := range platforms {
		if node.Labels[p.label] != "" {
			s.platforms[p.label] = true
		}
	}
	if group := groupOf(node.Spec.ProviderID); group != "" {
		s.groups[group] = true
	}
}

// seePod finds the name with which the EBS driver tags its disks.
func (s *survey) seePod(p *v1.Pod) {
	for i := range p.Spec.Containers {
		for _, arg := range p.Spec.Containers[i].Args {
			if name, found := strings.CutPrefix(arg, "--k8s-tag-cluster-id="); found {
				s.clusterTag = name
			}
		}
	}
}

func (s *survey) seeService(o *v1.Service) {
	s.seeNames(o)
	for _, ingress := range o.Status.LoadBalancer.Ingress {
		s.seeAddress(ingress.Hostname)
	}
}

func (s *survey) seeIngress(o *networkingv1.Ingress) {
	s.seeNames(o)
	for _, ingress := range o.Status.LoadBalancer.Ingress {
		s.seeAddress(ingress.Hostname)
	}
}

func (s *survey) seeGateway(o *unstructured.Unstructured) {
	addresses, _, _ := unstructured.NestedSlice(o.Object, "status", "addresses")
	for _, entry := range addresses {
		fields, _ := entry.(map[string]any)
		// Its type may be absent or of an implementation: what is no IP address is a host name.
		value, _ := fields["value"].(string)
		if net.ParseIP(value) != nil {
			value = ""
		}
		s.seeAddress(value)
	}
}

// seeNames counts objects for which external-dns writes names.
func (s *survey) seeNames(object metav1.Object) {
	for name := range object.GetAnnotations() {
		if strings.HasPrefix(name, "external-dns.alpha.kubernetes.io/hostname") {
			s.names++
			return
		}
	}
}

// seeAddress keeps the host name, "" for an IP address, of something outside that leads into the cluster.
func (s *survey) seeAddress(host string) {
	s.balanced = true
	if host != "" {
		s.hostNames[host] = true
	}
}

func isReady(node *v1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == v1.NodeReady {
			return condition.Status == v1.ConditionTrue
		}
	}
	return false
}

const (
	// lookups is how many host names are resolved at once, resolving for how long all are.
	lookups   = 16
	resolving = 30 * time.Second
)

// resolve finds the addresses of the API server (#33), and the host names of load balancers that lead to them. A name
// that does not exist leads nowhere; one whose addresses are not known may lead to the API server.
func (s *survey) resolve(ctx context.Context, r *cluster.Reader) {
	server, err := url.Parse(s.Server)
	if err != nil || server.Hostname() == "" {
		return
	}
	host := server.Hostname()
	s.plan.APIServer[host] = true
	if !s.balanced {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, resolving)
	defer cancel()
	if net.ParseIP(host) == nil {
		addresses, err := s.lookup(ctx, host)
		if err != nil {
			r.Note("which load balancers lead to the API server is not known: %v", err)
		}
		for _, address := range addresses {
			s.plan.APIServer[address] = true
		}
	}
	s.resolveBalancers(ctx, r)
}

// lookup returns the addresses of a host name, none if it does not exist.
func (s *survey) lookup(ctx context.Context, host string) ([]string, error) {
	addresses, err := s.Lookup(ctx, host)
	if absent, is := errors.AsType[*net.DNSError](err); is && absent.IsNotFound {
		return nil, nil
	}
	return addresses, err
}

// resolveBalancers adds the host names of load balancers that lead to the API server.
func (s *survey) resolveBalancers(ctx context.Context, r *cluster.Reader) {
	var group errgroup.Group
	var mu sync.Mutex
	var same []string
	var failed error
	group.SetLimit(lookups)
	for name := range s.hostNames {
		group.Go(func() error {
			addresses, err := s.lookup(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			failed = cmp.Or(failed, err)
			if slices.ContainsFunc(addresses, func(address string) bool { return s.plan.APIServer[address] }) {
				same = append(same, name)
			}
			return nil
		})
	}
	_ = group.Wait()
	if failed != nil {
		r.Note("which load balancers lead to the API server is not known: %v", failed)
	}
	for _, name := range same {
		s.plan.APIServer[name] = true
	}
}
