package main

import (
	"log"
	"net/netip"
	"slices"
	"sync/atomic"
)

// tally counts requests, those under way, and failures.
type tally struct {
	requests, current, failures atomic.Uint64
}

// begin counts a request, and counts it as under way until end.
func (t *tally) begin() {
	t.requests.Add(1)
	t.current.Add(1)
}

// end counts a request as no longer under way.
func (t *tally) end() { t.current.Add(^uint64(0)) }

// fail counts a failed request.
func (t *tally) fail() { t.failures.Add(1) }

// backend is one address of the service.
type backend struct {
	tally
	address netip.AddrPort
	// authority is the address in a URL's form.
	authority string
	healthy   atomic.Bool
}

func newBackend(address netip.AddrPort) *backend {
	return &backend{address: address, authority: address.String()}
}

// setHealthy stores the result of the last check, and logs a change.
func (b *backend) setHealthy(healthy bool) {
	if b.healthy.Swap(healthy) == healthy {
		return
	}
	if healthy {
		log.Printf("the backend %s is healthy", b.authority)
	} else {
		log.Printf("the backend %s is not healthy", b.authority)
	}
}

// backendStats is the part of GET /stats for one backend.
type backendStats struct {
	Requests uint64 `json:"requests"`
	Current  uint64 `json:"current"`
	Failures uint64 `json:"failures"`
	Healthy  bool   `json:"healthy"`
}

// backends holds all backends and the number of the next turn.
type backends struct {
	now   atomic.Pointer[rotation]
	turns atomic.Uint64
}

// rotation lists the backends at one time, the healthy backends first.
type rotation struct {
	all     []*backend
	healthy int
}

// rotation returns the current backends.
func (b *backends) rotation() *rotation {
	if now := b.now.Load(); now != nil {
		return now
	}
	return &rotation{}
}

// turn returns the number of earlier calls, from 0 on.
func (b *backends) turn() uint64 { return b.turns.Add(1) - 1 }

// set replaces the backends by these addresses, which must be sorted. Known backends keep their counts.
func (b *backends) set(addresses []netip.AddrPort) {
	known := b.rotation().all
	var healthy, others []*backend
	for _, address := range addresses {
		var one *backend
		if at := slices.IndexFunc(known, func(b *backend) bool { return b.address == address }); at >= 0 {
			one = known[at]
		} else {
			log.Printf("new backend %s", address)
			one = newBackend(address)
		}
		if one.healthy.Load() {
			healthy = append(healthy, one)
		} else {
			others = append(others, one)
		}
	}
	for _, gone := range known {
		if !slices.Contains(addresses, gone.address) {
			log.Printf("the backend %s is gone", gone.authority)
		}
	}
	b.now.Store(&rotation{append(healthy, others...), len(healthy)})
}

// order yields each backend once, in the order of this turn: the healthy backends from the turn's backend on, then the
// others.
func (r *rotation) order(turn uint64) func(yield func(*backend) bool) {
	return func(yield func(*backend) bool) {
		for _, group := range [...][]*backend{r.all[:r.healthy], r.all[r.healthy:]} {
			for i := range uint64(len(group)) {
				if !yield(group[(turn+i)%uint64(len(group))]) {
					return
				}
			}
		}
	}
}

// isHealthy reports whether at least one backend was healthy at the last check.
func (r *rotation) isHealthy() bool { return r.healthy > 0 }

// stats returns the counts of each backend, by its address.
func (r *rotation) stats() map[string]backendStats {
	stats := make(map[string]backendStats, len(r.all))
	for place, b := range r.all {
		stats[b.authority] = backendStats{
			b.requests.Load(), b.current.Load(), b.failures.Load(),
			// The state that turns use. A check that has just ended is not part of it yet.
			place < r.healthy,
		}
	}
	return stats
}
