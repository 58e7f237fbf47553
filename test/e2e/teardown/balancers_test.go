package teardown

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/test/e2e/harness"
	"github.com/exeunt-io/exeunt/test/sandbox"
)

// balancerOf returns the load balancer of a Service.
func balancerOf(s *harness.Session, service *v1.Service) (sandbox.Balancer, bool) {
	s.T.Helper()
	all, err := s.Balancers.List()
	s.Must(err, "read load balancers")
	i := slices.IndexFunc(all, func(b sandbox.Balancer) bool { return b.UID == string(service.UID) })
	if i < 0 {
		return sandbox.Balancer{}, false
	}
	return all[i], true
}

// createService creates a Service of type LoadBalancer.
func createService(s *harness.Session, name string) *v1.Service {
	s.T.Helper()
	service, err := s.Client.CoreV1().Services(s.Namespace).Create(s.Ctx, &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1.ServiceSpec{Type: v1.ServiceTypeLoadBalancer, Ports: []v1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	s.Must(err, "create Service")
	return service
}

// awaitService waits until a Service exists and the condition holds.
func awaitService(s *harness.Session, name, what string, holds func(*v1.Service) bool) *v1.Service {
	s.T.Helper()
	return harness.Await(s, &v1.Service{}, harness.ObjectName{Resource: "services", Namespace: s.Namespace, Name: name},
		what, func(service *v1.Service, exists bool) bool { return exists && holds(service) })
}

func awaitServiceGone(s *harness.Session, name string) {
	s.T.Helper()
	harness.Await(s, &v1.Service{}, harness.ObjectName{Resource: "services", Namespace: s.Namespace, Name: name},
		"is gone", func(_ *v1.Service, exists bool) bool { return !exists })
}

func deleteService(s *harness.Session, name string) {
	s.T.Helper()
	s.Must(s.Client.CoreV1().Services(s.Namespace).Delete(s.Ctx, name, metav1.DeleteOptions{}), "delete Service")
}

func hasAddress(service *v1.Service) bool { return len(service.Status.LoadBalancer.Ingress) > 0 }

func TestLoadBalancerLivesAsLongAsItsService(t *testing.T) {
	s := harness.Own(t, harness.Setup{Teardown: true})
	createService(s, "web")
	service := awaitService(s, "web", "has an address", hasAddress)
	const cleanup = "service.kubernetes.io/load-balancer-cleanup"
	if made, exists := balancerOf(s, service); !exists || made.Address != service.Status.LoadBalancer.Ingress[0].IP ||
		!slices.Contains(service.Finalizers, cleanup) {
		t.Errorf("the cloud has %+v; finalizers %q, status %+v", made, service.Finalizers, service.Status)
	}
	deleteService(s, "web")
	awaitServiceGone(s, "web")
	if left, exists := balancerOf(s, service); exists {
		t.Errorf("the cloud still has %+v", left)
	}
}

// The fault that ends shows that the Service waited for the cloud, and for nothing else.
func TestServiceWaitsForItsLoadBalancer(t *testing.T) {
	s := harness.Own(t, harness.Setup{Teardown: true})
	createService(s, "web")
	service := awaitService(s, "web", "has an address", hasAddress)
	s.Must(s.Balancers.SetFaults("[{method: EnsureLoadBalancerDeleted, service: "+s.Namespace+"/web, error: in use}]"),
		"set faults")
	deleteService(s, "web")
	s.AwaitEvent(service, "SyncLoadBalancerFailed")
	if _, exists := balancerOf(s, service); !exists {
		t.Error("the load balancer is gone, although its deletion failed")
	}
	s.Must(s.Balancers.SetFaults(""), "set faults")
	awaitServiceGone(s, "web")
	if _, exists := balancerOf(s, service); exists {
		t.Error("the load balancer is left behind")
	}
}
