package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func newService(name string) *v1.Service {
	return &v1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)}}
}

// open opens the load balancers in the file.
func open(t *testing.T, file string) *balancers {
	t.Helper()
	opened, err := openBalancers(file)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func ensure(t *testing.T, b *balancers, service *v1.Service) balancer {
	t.Helper()
	made, err := b.ensure("a-"+service.Name, service)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestLoadBalancersOutliveTheProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	before := open(t, file)
	web, api := ensure(t, before, newService("web")), ensure(t, before, newService("api"))
	after := open(t, file)
	if again := ensure(t, after, newService("web")); again != web {
		t.Errorf("the load balancer is %+v, want %+v", again, web)
	}
	if other := ensure(t, after, newService("other")); other.Address == web.Address || other.Address == api.Address {
		t.Errorf("two load balancers have address %s", other.Address)
	}
}

func TestFileHasOneLineForEachLoadBalancer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	b := open(t, file)
	ensure(t, b, newService("web"))
	ensure(t, b, newService("api"))
	if err := b.remove("uid-web"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	want := `{"name":"a-api","service":"shop/api","uid":"uid-api","address":"198.18.0.2"}` + "\n"
	if err != nil || string(text) != want {
		t.Errorf("the file has %q, %v; want %q", text, err, want)
	}
}

func TestServiceNamesItsAddress(t *testing.T) {
	service := newService("web")
	service.Spec.LoadBalancerIP = "127.0.0.1"
	if made := ensure(t, open(t, filepath.Join(t.TempDir(), "state")), service); made.Address != "127.0.0.1" {
		t.Errorf("the address is %s", made.Address)
	}
}

func TestUnreadableStateIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(file, []byte("{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openBalancers(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("openBalancers: %v, want an error with the name of the file", err)
	}
}
