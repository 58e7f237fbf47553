package csimock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Fault is a scripted fault of a method. Several effects apply in the order of delay, hang,
// and failure or wrong response.
type Fault struct {
	// Method is the short name of an RPC, such as DeleteVolume.
	Method string
	// Volume restricts the fault to calls whose request has this volume ID, volume name or
	// snapshot ID; empty for every call of the method. A DeleteVolume request has no name.
	Volume string
	// Code is the error code of the call; codes.OK for no error.
	Code codes.Code
	// Times is the number of calls that the fault applies to; 0 for every call. A fault after
	// the handler counts a call whose handler fails, too.
	Times int
	// Every applies the fault to each n-th call only, counted over the calls that match and
	// that no earlier fault applies to; 0 is the same as 1.
	Every int
	// Latency delays the call, at most until its context ends.
	Latency time.Duration
	// Hang blocks the call until its context ends or the driver stops.
	Hang bool
	// Disconnect closes all connections, so that the caller gets no response.
	Disconnect bool
	// After applies the fault after the handler: the call has its effect, but fails.
	After bool
	// Response is an error in the response to a CreateVolume or ListVolumes that succeeds.
	Response WrongResponse
}

// errStopping is the error of calls that are interrupted when the driver stops.
var errStopping = status.Error(codes.Unavailable, "the driver is stopping")

// errDisconnected is the logged error of a call whose connection was closed.
var errDisconnected = status.Error(codes.Unavailable, "scripted loss of connection")

// methods returns the short names of all RPCs of the driver.
func methods() []string {
	var names []string
	for _, service := range services {
		for _, method := range service.Methods {
			names = append(names, method.MethodName)
		}
	}
	return names
}

// services describes the gRPC services of the driver.
var services = []grpc.ServiceDesc{
	csi.Identity_ServiceDesc, csi.Controller_ServiceDesc, csi.GroupController_ServiceDesc, csi.Node_ServiceDesc,
}

// validate refuses a fault that can never apply or has no effect.
func (f Fault) validate() error {
	switch {
	case !slices.Contains(methods(), f.Method):
		return fmt.Errorf("unknown method %q, a known one is DeleteVolume", f.Method)
	case f.Times < 0:
		return fmt.Errorf("times must not be negative, got %d", f.Times)
	case f.Every < 0:
		return fmt.Errorf("every must not be negative, got %d", f.Every)
	case f.Latency < 0:
		return fmt.Errorf("latency must not be negative, got %v", f.Latency)
	case f.Code > codes.Unauthenticated:
		return fmt.Errorf("unknown code %d", f.Code)
	case f.Response != "" && !slices.Contains(wrongResponses[f.Method], f.Response):
		return fmt.Errorf("unknown response %q of %s, CreateVolume has %v, ListVolumes has %v", f.Response, f.Method,
			wrongResponses["CreateVolume"], wrongResponses["ListVolumes"])
	case f.Code == codes.OK && f.Latency == 0 && !f.Hang && !f.Disconnect && f.Response == "":
		return fmt.Errorf("fault on %s has no effect, it needs a code, a latency, hang, disconnect or a response", f.Method)
	}
	return nil
}

// apply applies a fault to a call and returns the error of the call, nil if the call
// continues.
func (d *Driver) apply(ctx context.Context, f Fault) error {
	if d.config.FaultApplied != nil {
		d.config.FaultApplied(f)
	}
	if err := wait(ctx, f.Latency); err != nil {
		return err
	}
	if f.Hang {
		<-ctx.Done()
		return interruption(ctx)
	}
	switch {
	case f.Disconnect:
		return errDisconnected
	case f.Code != codes.OK:
		return status.Errorf(f.Code, "scripted fault on %s", f.Method)
	}
	return nil
}

// wait returns nil after the latency, or an error if the context ends earlier.
func wait(ctx context.Context, latency time.Duration) error {
	if latency == 0 {
		return nil
	}
	timer := time.NewTimer(latency)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return interruption(ctx)
	}
}

// interruption returns the status of a call whose context ended.
func interruption(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errStopping) {
		return errStopping
	}
	return status.FromContextError(ctx.Err()).Err()
}

// matches reports whether a request has the fault's volume or snapshot.
func (f Fault) matches(request any) bool {
	return f.Volume == "" || slices.Contains([]string{volumeOf(request, nil), snapshotOf(request, nil), nameOf(request)},
		f.Volume)
}

// script is the list of faults.
type script struct {
	mu     sync.Mutex
	faults []*scripted
}

// scripted is a fault and the number of calls that it was tried for.
type scripted struct {
	Fault
	tried int
}

// applies counts a call and reports whether the fault applies to it.
func (s *scripted) applies(method string, request any) bool {
	if s.Method != method || !s.matches(request) {
		return false
	}
	s.tried++
	return s.Every == 0 || s.tried%s.Every == 0
}

// add appends all faults, or none if one is refused.
func (s *script) add(faults []Fault) error {
	for i, f := range faults {
		if err := f.validate(); err != nil {
			return fmt.Errorf("inject fault %d: %w", i+1, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		s.faults = append(s.faults, &scripted{Fault: f})
	}
	return nil
}

// clear removes all faults.
func (s *script) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// take returns the first fault that applies to the call and counts the call.
func (s *script) take(method string, request any) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.faults, func(f *scripted) bool { return f.applies(method, request) })
	if i < 0 {
		return Fault{}, false
	}
	taken := s.faults[i].Fault
	switch taken.Times {
	case 0:
	case 1:
		s.faults = slices.Delete(s.faults, i, i+1)
	default:
		s.faults[i].Times--
	}
	return taken, true
}
