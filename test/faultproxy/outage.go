package faultproxy

import "time"

// Outage cuts all connections and refuses new ones for the duration. It returns at once. A
// second outage within the first one adds nothing.
func (p *Proxy) Outage(duration time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out {
		return
	}
	p.out = true
	p.door.refuse()
	go p.reopen(duration)
}

// reopen listens again after the duration. Another socket may use the port for a moment.
func (p *Proxy) reopen(wait time.Duration) {
	for pass(p.ctx, wait) == nil {
		wait = reopenInterval
		p.mu.Lock()
		if p.ctx.Err() != nil || p.door.open() == nil {
			p.out = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
}
