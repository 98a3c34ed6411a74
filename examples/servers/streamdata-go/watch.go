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

// second is how often the service is resolved and its backends are checked, and how long either may take.
const second = time.Second

// found is what is known of a host: its addresses, or why there are none.
type found struct {
	addresses []netip.Addr
	fault     string
}

// watch keeps the backends up to date, without end.
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
		// Those who are healthy now have their turn.
		balancer.backends.set(addresses)
	}
}

// resolve looks a host up. Where that fails, the addresses that it had stay.
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

// preferred is the IPv4 addresses, or the IPv6 ones where there are no others: a pod that has both is one backend.
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

// addressesOf is the addresses of all hosts, sorted, each once.
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

// check asks all backends at once how they are.
func check(balancer *balancer) {
	ctx, cancel := context.WithTimeout(context.Background(), second)
	defer cancel()
	var checks sync.WaitGroup
	for _, one := range balancer.backends.rotation().all {
		checks.Go(func() { one.setHealthy(answers(ctx, balancer.client, one.authority)) })
	}
	checks.Wait()
}

// answers is whether /healthz answers 200.
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
