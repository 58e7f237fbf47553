package plan

import (
	"context"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/teardown/inventory"
	"github.com/exeunt-io/exeunt/pkg/why/cluster"
)

const (
	snapshotGroup = "snapshot.storage.k8s.io"
	gatewayGroup  = "gateway.networking.k8s.io"
)

// fill fills the inventory from paged lists, and returns what could not be read.
func (s *survey) fill(ctx context.Context) []string {
	lists := s.Reader.Scope()
	set(ctx, s, lists, cluster.Namespaces, "Namespace", nil)
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
	for _, reason := range []string{"Provisioning", "ProvisioningFailed"} {
		cluster.Each(ctx, lists, cluster.Events, cluster.Selection{
			Fields: "involvedObject.kind=PersistentVolumeClaim,reason=" + reason}, func(page []v1.Event) {
			for i := range page {
				s.inventory.Set(&page[i])
			}
		})
	}
	s.setCustom(ctx, lists)
	s.nodes, _ = cluster.List(ctx, lists, cluster.Nodes, cluster.Selection{})
	s.plan.Cluster.Nodes = len(s.nodes)
	for i := range s.nodes {
		if isReady(&s.nodes[i]) {
			s.ready++
		}
	}
	return lists.Incomplete()
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
		objects, _ := r.Objects(ctx, resource.GroupVersionResource, "")
		for i := range objects {
			s.preserve(resource.Kind, &objects[i])
			s.inventory.Set(&objects[i])
		}
	}
}

// preserve sets the label on an object that a person wants to keep, as read.
func (s *survey) preserve(kind string, object metav1.Object) {
	target := Target{kind, object.GetNamespace(), object.GetName()}
	for _, wanted := range s.Preserve {
		if wanted == target {
			s.found[target] = true
			labels := map[string]string{inventory.PreserveLabel: "true"}
			for name, value := range object.GetLabels() {
				labels[name] = value
			}
			object.SetLabels(labels)
		}
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
		s.seeHost(ingress.Hostname)
	}
}

func (s *survey) seeIngress(o *networkingv1.Ingress) {
	s.seeNames(o)
	for _, ingress := range o.Status.LoadBalancer.Ingress {
		s.seeHost(ingress.Hostname)
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

func (s *survey) seeHost(name string) {
	if name != "" {
		s.hostNames = append(s.hostNames, name)
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
	// lookups is how many host names of load balancers are resolved at most, resolving for how long.
	lookups   = 200
	resolving = 5 * time.Second
)

// resolve finds the addresses of the API server (#33), and the host names of load balancers that lead to them.
func (s *survey) resolve(ctx context.Context) {
	server, err := url.Parse(s.Server)
	if err != nil || server.Hostname() == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, resolving)
	defer cancel()
	host := server.Hostname()
	s.plan.APIServer[host] = true
	if net.ParseIP(host) == nil {
		if name, err := net.DefaultResolver.LookupCNAME(ctx, host); err == nil {
			s.plan.APIServer[strings.TrimSuffix(name, ".")] = true
		}
		addresses, _ := net.DefaultResolver.LookupHost(ctx, host)
		for _, address := range addresses {
			s.plan.APIServer[address] = true
		}
	}
	s.resolveBalancers(ctx)
}

// resolveBalancers adds the host names of load balancers that lead to the API server.
func (s *survey) resolveBalancers(ctx context.Context) {
	var group errgroup.Group
	var mu sync.Mutex
	var same []string
	group.SetLimit(16)
	for _, name := range s.hostNames[:min(lookups, len(s.hostNames))] {
		group.Go(func() error {
			addresses, _ := net.DefaultResolver.LookupHost(ctx, name)
			for _, address := range addresses {
				if s.plan.APIServer[address] {
					mu.Lock()
					defer mu.Unlock()
					same = append(same, name)
					return nil
				}
			}
			return nil
		})
	}
	_ = group.Wait()
	for _, name := range same {
		s.plan.APIServer[name] = true
	}
}
