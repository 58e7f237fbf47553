package faultproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Config configures a proxy.
type Config struct {
	// Program is the name of the program in decisions and in the log.
	Program string
	// Upstream is the API server and the program's credentials.
	Upstream *rest.Config
	// Seed of all decisions.
	Seed uint64
	// Rates at the start.
	Rates Rates
	// Choose, unless nil, chooses the fault of a request by what the Fault says of the request, in place of the rates. A
	// kind that cannot happen to the request is none. It is called from many goroutines.
	Choose func(Fault) Kind
	// Log receives every injected fault, if not nil. It is called from many goroutines.
	Log func(Fault)
	// LeaderLeases are the names of the Leases to which Rates.Leases apply. Empty means all.
	LeaderLeases []string
	// NoWatchList refuses watches that begin with all objects, as an API server with the
	// feature WatchList off does. Clients list instead.
	NoWatchList bool
	// MaxDelay bounds every delay, stall and outage. Zero means 5 seconds.
	MaxDelay time.Duration
	// Wrap, unless nil, returns what handles the requests of the program, given what forwards them.
	Wrap func(forward http.Handler) http.Handler
	// Change, unless nil, changes the answers of the API server.
	Change func(*http.Response) error
	// Tick is the time between two decisions about an open watch. Zero means a second.
	Tick time.Duration
}

// Proxy forwards the requests of one program to the API server and injects faults.
type Proxy struct {
	config   Config
	forward  *httputil.ReverseProxy
	decider  *decider
	gate     gate
	endpoint *endpoint
	versions versions

	ctx    context.Context
	cancel context.CancelFunc

	mu       sync.Mutex
	stats    map[Kind]int
	requests int
	// out: connections are refused.
	out bool
}

// New returns a proxy that does not listen yet.
func New(config Config) (*Proxy, error) {
	config.MaxDelay = cmp.Or(config.MaxDelay, 5*time.Second)
	config.Tick = cmp.Or(config.Tick, time.Second)
	target, _, err := rest.DefaultServerUrlFor(config.Upstream)
	if err != nil {
		return nil, fmt.Errorf("parse address of the API server: %w", err)
	}
	transport, err := rest.TransportFor(config.Upstream)
	if err != nil {
		return nil, fmt.Errorf("make transport to the API server: %w", err)
	}
	p := &Proxy{
		config: config,
		decider: &decider{
			program: config.Program, seed: config.Seed, leases: config.LeaderLeases, maxDelay: config.MaxDelay,
			choose: config.Choose, ordinals: map[string]int{},
		},
		stats: map[Kind]int{},
	}
	p.decider.setRates(config.Rates)
	p.forward = p.newForward(target, transport)
	p.ctx, p.cancel = context.WithCancel(context.Background())
	handler := http.Handler(p)
	if config.Wrap != nil {
		handler = config.Wrap(handler)
	}
	if p.endpoint, err = newEndpoint(handler); err != nil {
		p.cancel()
		return nil, err
	}
	return p, nil
}

// newForward returns the handler that forwards to target.
func (p *Proxy) newForward(target *url.URL, transport http.RoundTripper) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:      &staleTransport{proxy: p, next: transport},
		FlushInterval:  -1, // watches
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: p.changeResponse,
		ErrorHandler:   abort,
		ErrorLog:       log.New(io.Discard, "", 0),
	}
}

// abort cuts the request: no API server answers for an API server that cannot be reached.
func abort(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }

// Start listens on loopback.
func (p *Proxy) Start() error { return p.endpoint.open() }

// Close cuts all connections and stops to listen.
func (p *Proxy) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancel()
	return p.endpoint.close()
}

// Kubeconfig writes a kubeconfig for the program into file. The proxy must have started.
func (p *Proxy) Kubeconfig(file string) error {
	address := p.endpoint.address()
	if address == "" {
		return errors.New("write kubeconfig of the proxy: the proxy has not started")
	}
	const name = "faultproxy"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + address,
		CertificateAuthorityData: p.endpoint.authority}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	config.CurrentContext = name
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("write kubeconfig of the proxy: %w", err)
	}
	return nil
}

// SetRates replaces the rates. Zero rates let everything pass; faults that last, such as a
// stall, go on until their end.
func (p *Proxy) SetRates(rates Rates) { p.decider.setRates(rates) }

// Stats returns the number of injected faults by kind.
func (p *Proxy) Stats() map[Kind]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.stats)
}

// Requests returns the number of requests so far.
func (p *Proxy) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// Pause lets no request, answer or event pass until Resume, and keeps all connections: an
// API server that hangs, or a network that drops packets.
func (p *Proxy) Pause() { p.gate.shut() }

// Resume ends Pause.
func (p *Proxy) Resume() { p.gate.open() }

// inject counts and logs a fault.
func (p *Proxy) inject(fault Fault) {
	fault.Time = time.Now()
	p.mu.Lock()
	p.stats[fault.Kind]++
	p.mu.Unlock()
	if p.config.Log != nil {
		p.config.Log(fault)
	}
}

// Outage cuts all connections and refuses new ones for the duration. It returns at once. A
// second outage within the first one adds nothing.
func (p *Proxy) Outage(duration time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out {
		return
	}
	p.out = true
	p.endpoint.refuse()
	go p.reopen(duration)
}

// reopen listens again after the duration. Another socket may use the port for a moment.
func (p *Proxy) reopen(wait time.Duration) {
	for pass(p.ctx, wait) == nil {
		wait = reopenInterval
		p.mu.Lock()
		if p.ctx.Err() != nil || p.endpoint.open() == nil {
			p.out = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
}
