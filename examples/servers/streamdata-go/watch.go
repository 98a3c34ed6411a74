package main

import (
	"context"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// second is the interval of resolving the service and checking its backends, and the time limit of each.
const second = time.Second

// found holds the addresses of a host, or the reason why there are none.
type found struct {
	addresses []netip.Addr
	fault     string
}

// watch updates the backends in an endless loop.
func watch(service service, balancer *balancer) {
	hosts := make(map[string]found)
	ticks := time.NewTicker(second)
	for ; ; <-ticks.C {
		for _, host := range service.hosts {
			hosts[host] = resolve(host, hosts[host])
		}
		addresses := addressesOf(hosts, service.port)
		balancer.backends.set(addresses)
		check(balancer)
		// Apply the results of the check to the turns.
		balancer.backends.set(addresses)
	}
}

// resolve looks a host up. If the lookup fails, the host keeps its last addresses.
func resolve(host string, last found) found {
	ctx, cancel := context.WithTimeout(context.Background(), second)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	switch {
	case err == nil:
		return found{addresses: preferred(addresses)}
	case len(last.addresses) > 0:
		log.Printf("cannot resolve %s, its addresses stay: %v", host, err)
	case last.fault != err.Error():
		log.Printf("cannot resolve %s: %v", host, err)
		last.fault = err.Error()
	}
	return last
}

// preferred returns the IPv4 addresses, or the IPv6 addresses if there are no others. A pod with both is one backend.
func preferred(addresses []netip.Addr) []netip.Addr {
	var four, six []netip.Addr
	for _, address := range addresses {
		if address = address.Unmap(); address.Is4() {
			four = append(four, address)
		} else {
			six = append(six, address)
		}
	}
	if four != nil {
		return four
	}
	return six
}

// addressesOf returns the addresses of all hosts, sorted, without duplicates.
func addressesOf(hosts map[string]found, port uint16) []netip.AddrPort {
	var addresses []netip.AddrPort
	for _, host := range hosts {
		for _, address := range host.addresses {
			addresses = append(addresses, netip.AddrPortFrom(address, port))
		}
	}
	slices.SortFunc(addresses, netip.AddrPort.Compare)
	return slices.Compact(addresses)
}

// check checks all backends in parallel.
func check(balancer *balancer) {
	ctx, cancel := context.WithTimeout(context.Background(), second)
	defer cancel()
	var checks sync.WaitGroup
	for _, one := range balancer.backends.rotation().all {
		checks.Go(func() { one.setHealthy(answers(ctx, balancer.client, one.authority)) })
	}
	checks.Wait()
}

// answers reports whether /healthz answers 200.
func answers(ctx context.Context, client http.RoundTripper, authority string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+authority+"/healthz", nil)
	if err != nil {
		return false
	}
	answer, err := client.RoundTrip(request)
	if err != nil {
		return false
	}
	defer drain(answer.Body)
	return answer.StatusCode == http.StatusOK
}
