package teardown

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/exeunt-io/exeunt/pkg/teardown"
)

// Service is a Service of type LoadBalancer, or one that was. Again: it is the second one of its name.
type Service struct {
	Exists, Deleting, Label, Again bool
	// Internal: its type was changed. Held: it has the finalizer of its controller. Balancer: the load balancer exists.
	Internal, Held, Balancer bool
	// Must: somebody wants the load balancer to live, and has said so in time.
	Must bool
}

// serves reports whether its controller has to make a load balancer.
func (s Service) serves() bool { return s.Exists && !s.Deleting && !s.Internal }

// remains reports whether a load balancer exists, or is about to be made.
func (s Service) remains() bool {
	return !s.Label && (s.Balancer || s.Exists && !s.Internal)
}

// object returns the Service for the inventory.
func (s Service) object() *v1.Service {
	service := &v1.Service{ObjectMeta: named("apps", "service", 0)}
	service.Spec.Type = v1.ServiceTypeLoadBalancer
	if s.Internal {
		service.Spec.Type = v1.ServiceTypeClusterIP
	}
	if s.Held {
		service.Finalizers = []string{"service.kubernetes.io/load-balancer-cleanup"}
	}
	if s.Label {
		service.Labels["lifecycle.exeunt.io/preserve"] = ""
	}
	if s.Deleting {
		service.DeletionTimestamp = &metav1.Time{Time: began}
	}
	return service
}

// services adds what the owner and the controller of the Service do.
func (w World) services(add adder) {
	add(true, "the owner makes a Service", func(s *State) {
		if service := &s.API.Service; w.Service && !service.Exists && !service.Again && s.API.Freeze != teardown.InForce {
			*service = Service{Exists: true, Again: true}
		}
	})
	add(true, "a Service gets its finalizer", func(s *State) {
		s.API.Service.Held = s.API.Service.Held || s.API.Service.serves()
	})
	add(true, "a load balancer is made", func(s *State) {
		s.API.Service.Balancer = s.API.Service.Balancer || s.API.Service.serves() && s.API.Service.Held
	})
	add(true, "a load balancer is deleted", func(s *State) {
		if service := &s.API.Service; service.Balancer && !service.serves() {
			service.Balancer = false
			s.Broken |= BalancerLost.broken(service.Must)
		}
	})
	add(true, "a Service loses its finalizer", func(s *State) { s.API.Service.unhold() })
}

// unhold removes the finalizer once the load balancer is gone, and the Service if it is deleted.
func (s *Service) unhold() {
	s.Held = s.Held && (s.Balancer || s.serves())
	if s.Deleting && !s.Held {
		*s = Service{Again: s.Again}
	}
}

// serviceUsers adds what users do to the Service.
func (w World) serviceUsers(s State, user func(func(*Left) *uint8, string, bool, func(*State))) {
	lives := s.API.Service.Exists && !s.API.Service.Deleting
	user(func(l *Left) *uint8 { return &l.LabelsService }, "a user labels the Service", lives, func(s *State) {
		service := &s.API.Service
		service.Label, service.Must = true, service.Balancer && !service.Internal && !s.Late.Sent
	})
	user(func(l *Left) *uint8 { return &l.ChangesType }, "a user changes the type of the Service", lives, func(s *State) {
		s.API.Service.Internal, s.API.Service.Must = true, false
	})
	user(func(l *Left) *uint8 { return &l.DeletesService }, "a user deletes the Service", lives, func(s *State) {
		s.API.Service.Deleting, s.API.Service.Must = true, false
	})
}
