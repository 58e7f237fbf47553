package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// balancer is a line of the file.
type balancer struct {
	Name string `json:"name"`
	// Service is namespace/name.
	Service string    `json:"service"`
	UID     types.UID `json:"uid"`
	Address string    `json:"address"`
}

// status returns what the Service's status has.
func (b balancer) status() *v1.LoadBalancerStatus {
	return &v1.LoadBalancerStatus{Ingress: []v1.LoadBalancerIngress{{IP: b.Address}}}
}

// firstAddress is of a range that is reserved for benchmarks of networks, and has 131,072 addresses.
var firstAddress = netip.MustParseAddr("198.18.0.1")

// balancers are the load balancers of a cloud.
type balancers struct {
	file string

	mu    sync.Mutex
	byUID map[types.UID]balancer
	next  netip.Addr
}

// openBalancers returns the load balancers in the file, which need not exist.
func openBalancers(file string) (*balancers, error) {
	b := &balancers{file: file, byUID: map[types.UID]balancer{}, next: firstAddress}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read load balancers: %w", err)
	}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var found balancer
		err := decoder.Decode(&found)
		if errors.Is(err, io.EOF) {
			return b, b.write()
		}
		if err != nil {
			return nil, fmt.Errorf("parse load balancers in %s: %w", file, err)
		}
		b.byUID[found.UID] = found
	}
}

func (b *balancers) get(uid types.UID) (balancer, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found, exists := b.byUID[uid]
	return found, exists
}

// ensure makes the load balancer of a Service, unless it exists. A Service may name its address.
func (b *balancers) ensure(name string, service *v1.Service) (balancer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if found, exists := b.byUID[service.UID]; exists {
		return found, nil
	}
	made := balancer{Name: name, Service: service.Namespace + "/" + service.Name, UID: service.UID,
		Address: service.Spec.LoadBalancerIP}
	if made.Address == "" {
		made.Address = b.freeAddress()
	}
	b.byUID[service.UID] = made
	return made, b.write()
}

// freeAddress returns an address that no load balancer has. The caller holds the lock.
func (b *balancers) freeAddress() string {
	taken := map[string]bool{}
	for _, other := range b.byUID {
		taken[other.Address] = true
	}
	for taken[b.next.String()] {
		b.next = b.next.Next()
	}
	address := b.next.String()
	b.next = b.next.Next()
	return address
}

func (b *balancers) remove(uid types.UID) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, exists := b.byUID[uid]; !exists {
		return nil
	}
	delete(b.byUID, uid)
	return b.write()
}

// write replaces the file, so that a reader never sees half of it. The caller holds the lock.
func (b *balancers) write() error {
	all := slices.SortedFunc(maps.Values(b.byUID), func(x, y balancer) int {
		return strings.Compare(x.Service+" "+x.Name, y.Service+" "+y.Name)
	})
	var text bytes.Buffer
	for _, each := range all {
		line, err := json.Marshal(each)
		if err != nil {
			return fmt.Errorf("encode load balancer: %w", err)
		}
		text.Write(append(line, '\n'))
	}
	replacement := b.file + ".new"
	err := os.WriteFile(replacement, text.Bytes(), 0o600)
	if err == nil {
		err = os.Rename(replacement, b.file)
	}
	if err != nil {
		return fmt.Errorf("write load balancers: %w", err)
	}
	return nil
}
