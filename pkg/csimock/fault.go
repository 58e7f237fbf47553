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

// Fault is what goes wrong with the next calls of a method: a delay, then a
// hang, then a failure, each if asked for.
type Fault struct {
	// Method is the short name of an RPC, such as DeleteVolume.
	Method string
	// Volume is the ID or the name of a volume, or the ID of a snapshot; only
	// calls about it are struck. Empty is every call of the method.
	Volume string
	// Code is what the call fails with; codes.OK lets it go on.
	Code codes.Code
	// Times is how many calls are struck; 0 is every call from now on.
	Times int
	// Latency delays the call, or until its caller gives up.
	Latency time.Duration
	// Hang keeps the call until its caller gives up or the driver stops.
	Hang bool
	// Disconnect closes all connections to the driver, so that the caller gets no
	// answer at all.
	Disconnect bool
	// After lets the fault strike when the work is done and saved: the caller
	// sees a failure of something that happened.
	After bool
	// Response is an error in the response to a CreateVolume that succeeds.
	Response WrongResponse
}

// errStopping is the answer to the calls that the end of the driver interrupts.
var errStopping = status.Error(codes.Unavailable, "the driver is stopping")

// errCut is the answer to a call whose caller gets none: its connection is closed.
var errCut = status.Error(codes.Unavailable, "scripted loss of connection")

// Methods returns the short names of all RPCs of the driver, which are those
// that a Fault can strike.
func Methods() []string {
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

// validate refuses a fault that could never strike or has no effect.
func (f Fault) validate() error {
	switch {
	case !slices.Contains(Methods(), f.Method):
		return fmt.Errorf("unknown method %q, a known one is DeleteVolume", f.Method)
	case f.Times < 0:
		return fmt.Errorf("times must not be negative, got %d", f.Times)
	case f.Latency < 0:
		return fmt.Errorf("latency must not be negative, got %v", f.Latency)
	case f.Code > codes.Unauthenticated:
		return fmt.Errorf("unknown code %d", f.Code)
	case f.Response != "" && (!slices.Contains(wrongResponses, f.Response) || f.Method != "CreateVolume"):
		return fmt.Errorf("unknown response %q of %s, CreateVolume has %v", f.Response, f.Method, wrongResponses)
	case f.Code == codes.OK && f.Latency == 0 && !f.Hang && !f.Disconnect && f.Response == "":
		return fmt.Errorf("fault on %s has no effect, it needs a code, a latency, hang, disconnect or a response", f.Method)
	}
	return nil
}

// strike lets a fault happen to a call; nil means that the call goes on.
func (d *Driver) strike(ctx context.Context, f Fault) error {
	if d.config.Struck != nil {
		d.config.Struck(f)
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
		return errCut
	case f.Code != codes.OK:
		return status.Errorf(f.Code, "scripted fault on %s", f.Method)
	}
	return nil
}

// wait returns nil after the given time, or earlier with the reason why the
// call is over.
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

// interruption returns the status of a call whose context is done.
func interruption(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), errStopping) {
		return errStopping
	}
	return status.FromContextError(ctx.Err()).Err()
}

// concerns says whether a request is about the fault's volume or snapshot.
func (f Fault) concerns(request any) bool {
	return f.Volume == "" || slices.Contains([]string{volumeOf(request, nil), snapshotOf(request, nil), nameOf(request)}, f.Volume)
}

// script is the list of faults in force.
type script struct {
	mu     sync.Mutex
	faults []Fault
}

// add appends faults, all of them or, if one is refused, none.
func (s *script) add(faults []Fault) error {
	for i, f := range faults {
		if err := f.validate(); err != nil {
			return fmt.Errorf("inject fault %d: %w", i+1, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
	return nil
}

// clear ends all faults for the calls that begin from now on.
func (s *script) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// take returns the first fault on the call and counts the call against it.
func (s *script) take(method string, request any) (Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.faults, func(f Fault) bool { return f.Method == method && f.concerns(request) })
	if i < 0 {
		return Fault{}, false
	}
	taken := s.faults[i]
	switch taken.Times {
	case 0:
	case 1:
		s.faults = slices.Delete(s.faults, i, i+1)
	default:
		s.faults[i].Times--
	}
	return taken, true
}
