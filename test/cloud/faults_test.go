package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
)

// newCloud returns a cloud with these faults, and their file.
func newCloud(t *testing.T, text string) (*cloud, string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "faults")
	writeFaults(t, file, text)
	return &cloud{balancers: open(t, filepath.Join(dir, "state")), faults: faults{file: file}}, file
}

func writeFaults(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// exists reports whether the cloud has a load balancer of the Service.
func exists(c *cloud, service *v1.Service) bool {
	_, exists := c.balancers.get(service.UID)
	return exists
}

func expectError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestFailedDeletionKeepsTheLoadBalancer(t *testing.T) {
	c, file := newCloud(t, "[{method: EnsureLoadBalancerDeleted, service: shop/web, error: throttled}]")
	web, api := newService("web"), newService("api")
	for _, service := range []*v1.Service{web, api} {
		if _, err := c.EnsureLoadBalancer(t.Context(), "", service, nil); err != nil {
			t.Fatal(err)
		}
	}
	expectError(t, c.EnsureLoadBalancerDeleted(t.Context(), "", web), "throttled")
	if err := c.EnsureLoadBalancerDeleted(t.Context(), "", api); err != nil || !exists(c, web) || exists(c, api) {
		t.Errorf("deletion of the other: %v; web exists: %t, api: %t", err, exists(c, web), exists(c, api))
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := c.EnsureLoadBalancerDeleted(t.Context(), "", web); err != nil || exists(c, web) {
		t.Errorf("deletion without faults: %v, exists: %t", err, exists(c, web))
	}
}

func TestFaultAfterTheCallHasItsEffect(t *testing.T) {
	c, _ := newCloud(t, "[{method: EnsureLoadBalancer, error: lost answer, times: 1, after: true}]")
	web := newService("web")
	_, err := c.EnsureLoadBalancer(t.Context(), "", web, nil)
	expectError(t, err, "lost answer")
	made, _ := c.balancers.get(web.UID)
	status, err := c.EnsureLoadBalancer(t.Context(), "", web, nil)
	if err != nil || status.Ingress[0].IP != made.Address {
		t.Errorf("the second call returns %v, %v; want the load balancer of the first, %+v", status, err, made)
	}
}

func TestTimesAreCountedFromTheLastChange(t *testing.T) {
	c, file := newCloud(t, "[{method: UpdateLoadBalancer, error: first, times: 1}, {method: UpdateLoadBalancer, error: second, times: 1}]")
	web := newService("web")
	update := func() error { return c.UpdateLoadBalancer(t.Context(), "", web, nil) }
	expectError(t, update(), "first")
	expectError(t, update(), "second")
	if err := update(); err != nil {
		t.Errorf("the third call fails: %v", err)
	}
	writeFaults(t, file, "[{method: UpdateLoadBalancer, error: first, times: 1}]")
	expectError(t, update(), "first")
}

func TestLatencyAndHangDelayTheCall(t *testing.T) {
	c, file := newCloud(t, "[{method: GetLoadBalancer, latency: 1m}]")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if _, exists, err := c.GetLoadBalancer(t.Context(), "", newService("web")); err != nil || exists {
			t.Errorf("GetLoadBalancer = %t, %v", exists, err)
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("the call took %s", took)
		}
		writeFaults(t, file, "[{method: GetLoadBalancer, hang: true}]")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, _, err := c.GetLoadBalancer(ctx, "", newService("web")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("GetLoadBalancer = %v", err)
		}
	})
}

// A misspelled fault that has no effect would let a test pass.
func TestUnreadableFaultsFailEachCall(t *testing.T) {
	for text, want := range map[string]string{
		"[{method: DeleteVolume, error: x}]":                "unknown method",
		"[{method: GetLoadBalancer}]":                       "has no effect",
		"[{method: GetLoadBalancer, code: Unavailable}]":    "unknown field",
		"[{method: GetLoadBalancer, error: x, times: -1}]":  "must not be negative",
		"[{method: GetLoadBalancer, latency: 10}]":          "cannot unmarshal",
		"[{method: GetLoadBalancer, error: x, after: true}": "yaml",
	} {
		c, _ := newCloud(t, text)
		if err := c.EnsureLoadBalancerDeleted(t.Context(), "", newService("web")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error = %v, want %s", text, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	for args, want := range map[string]string{
		"--kubeconfig=k":             "--kubeconfig and --state must be set",
		"--kubeconfig=k --state=s x": `unknown argument "x"`,
		"--kubeconfig=k --state=s":   "",
	} {
		_, err := parse(strings.Fields(args))
		if got := map[bool]string{true: ""}[err == nil]; err != nil {
			got = err.Error()
			if got != want {
				t.Errorf("%s: error = %v, want %q", args, err, want)
			}
		} else if want != got {
			t.Errorf("%s: no error, want %q", args, want)
		}
	}
}
