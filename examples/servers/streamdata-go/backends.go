package main

import (
	"log"
	"net/netip"
	"slices"
	"sync/atomic"
)

// tally counts what became of requests.
type tally struct {
	requests, current, failures atomic.Uint64
}

// begin counts a request, and that it is under way until it ends.
func (t *tally) begin() {
	t.requests.Add(1)
	t.current.Add(1)
}

// end counts that a request is under way no more.
func (t *tally) end() { t.current.Add(^uint64(0)) }

// fail counts that a request failed.
func (t *tally) fail() { t.failures.Add(1) }

// backend is one address of the service.
type backend struct {
	tally
	address netip.AddrPort
	// authority is the address as a URL has it.
	authority string
	healthy   atomic.Bool
}

func newBackend(address netip.AddrPort) *backend {
	return &backend{address: address, authority: address.String()}
}

// setHealthy takes down what the last check found, and says so if it is news.
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

// backendStats is what is said of a backend.
type backendStats struct {
	Requests uint64 `json:"requests"`
	Current  uint64 `json:"current"`
	Failures uint64 `json:"failures"`
	Healthy  bool   `json:"healthy"`
}

// backends are all backends, and whose turn it is.
type backends struct {
	now   atomic.Pointer[rotation]
	turns atomic.Uint64
}

// rotation is the backends at one time, the healthy ones first.
type rotation struct {
	all     []*backend
	healthy int
}

// rotation is the backends as they are now.
func (b *backends) rotation() *rotation {
	if now := b.now.Load(); now != nil {
		return now
	}
	return &rotation{}
}

// turn is a number that is one more at each call, from 0 on.
func (b *backends) turn() uint64 { return b.turns.Add(1) - 1 }

// set makes these addresses, which are sorted, the backends. Those that are known keep what they have done.
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

// order is each backend once, as this turn tries them: healthy ones from the one whose turn it is, then the others.
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

// isHealthy is whether one at least was healthy when it was last checked.
func (r *rotation) isHealthy() bool { return r.healthy > 0 }

// stats is what each has done, by its address.
func (r *rotation) stats() map[string]backendStats {
	stats := make(map[string]backendStats, len(r.all))
	for place, b := range r.all {
		stats[b.authority] = backendStats{
			b.requests.Load(), b.current.Load(), b.failures.Load(),
			// As turns are taken, which a check that has just ended is not yet part of.
			place < r.healthy,
		}
	}
	return stats
}
