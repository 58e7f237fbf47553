package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The calls of the service controller.
const (
	getBalancer    = "GetLoadBalancer"
	ensureBalancer = "EnsureLoadBalancer"
	updateBalancer = "UpdateLoadBalancer"
	deleteBalancer = "EnsureLoadBalancerDeleted"
)

// fault is an element of the file of faults: which calls fail, and how. The effects apply in the order of latency, hang
// and error.
type fault struct {
	// Method is one of the calls above.
	Method string `json:"method"`
	// Service is the namespace/name that the fault is for; empty for all.
	Service string `json:"service,omitempty"`
	// Error is what the call fails with; empty for a call that succeeds.
	Error string `json:"error,omitempty"`
	// Times is the number of calls that the fault applies to; 0 for every call. It is counted from the last change of
	// the file.
	Times int `json:"times,omitempty"`
	// Latency delays the call.
	Latency metav1.Duration `json:"latency,omitzero"`
	// Hang blocks the call until the program ends.
	Hang bool `json:"hang,omitempty"`
	// After applies the fault after the call has had its effect.
	After bool `json:"after,omitempty"`
}

// validate refuses a fault that can never apply or has no effect.
func (f fault) validate() error {
	switch methods := []string{getBalancer, ensureBalancer, updateBalancer, deleteBalancer}; {
	case !slices.Contains(methods, f.Method):
		return fmt.Errorf("unknown method %q, there are %q", f.Method, methods)
	case f.Times < 0 || f.Latency.Duration < 0:
		return errors.New("times and latency must not be negative")
	case f.Error == "" && f.Latency.Duration == 0 && !f.Hang:
		return fmt.Errorf("fault on %s has no effect, it needs an error, a latency or hang", f.Method)
	}
	return nil
}

// faults are those of a file.
type faults struct {
	file string // "" for none

	mu     sync.Mutex
	text   string
	parsed []fault
	used   []int // the number of calls of each fault
}

// apply makes the call, with the first fault that matches, if any.
func (f *faults) apply(ctx context.Context, method string, service *v1.Service, call func() error) error {
	fault, err := f.take(method, service.Namespace+"/"+service.Name)
	if err != nil {
		return err
	}
	if fault.After {
		if err := call(); err != nil {
			return err
		}
		return fault.effect(ctx)
	}
	if err := fault.effect(ctx); err != nil {
		return err
	}
	return call()
}

// take returns the fault of a call, and counts it.
func (f *faults) take(method, service string) (fault, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.read(); err != nil {
		return fault{}, fmt.Errorf("read faults of the cloud: %w", err)
	}
	for i, found := range f.parsed {
		if found.Method == method && (found.Service == "" || found.Service == service) &&
			(found.Times == 0 || f.used[i] < found.Times) {
			f.used[i]++
			return found, nil
		}
	}
	return fault{}, nil
}

// read reads the file. The caller holds the lock.
func (f *faults) read() error {
	text, err := os.ReadFile(f.file)
	if f.file == "" || errors.Is(err, fs.ErrNotExist) {
		text, err = nil, nil
	}
	if err != nil || string(text) == f.text {
		return err
	}
	var parsed []fault
	if err := yaml.UnmarshalStrict(text, &parsed); err != nil {
		return err
	}
	for i, found := range parsed {
		if err := found.validate(); err != nil {
			return fmt.Errorf("%s: entry %d: %w", f.file, i+1, err)
		}
	}
	f.text, f.parsed, f.used = string(text), parsed, make([]int, len(parsed))
	return nil
}

// effect delays the call, and returns its error.
func (f fault) effect(ctx context.Context) error {
	var over <-chan time.Time
	if !f.Hang {
		over = time.After(f.Latency.Duration)
	}
	select {
	case <-over:
	case <-ctx.Done():
		return ctx.Err()
	}
	if f.Error != "" {
		return errors.New(f.Error)
	}
	return nil
}
