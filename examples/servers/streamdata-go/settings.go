package main

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// lookup returns an environment variable.
type lookup func(name string) (value string, found bool)

// service is the service behind the balancer.
type service struct {
	// hosts has at least one host.
	hosts []string
	// port is the TCP port that all of them listen on.
	port uint16
}

// missingError is an environment variable that is not set.
type missingError struct{ name, meaning string }

func (e missingError) Error() string { return fmt.Sprintf("%s is not set: give %s", e.name, e.meaning) }

// settingError is an environment variable that is wrong.
type settingError struct{ name, must, value string }

func (e settingError) Error() string {
	return fmt.Sprintf("%s must be %s, not \"%s\"", e.name, e.must, e.value)
}

// listenAddress returns the address and port of the HTTP server.
func listenAddress(variable lookup) (string, error) {
	host, found := variable("LISTEN_ADDRESS")
	if !found {
		host = "0.0.0.0"
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return "", settingError{"LISTEN_ADDRESS", "an IP address", host}
	}
	port := uint16(8080)
	if value, found := variable("PORT"); found {
		var err error
		if port, err = parsePort("PORT", value); err != nil {
			return "", err
		}
	}
	return net.JoinHostPort(host, strconv.Itoa(int(port))), nil
}

// serviceFrom reads the service from the environment.
func serviceFrom(variable lookup) (service, error) {
	list, _ := variable("SERVICE_HOST")
	if list == "" {
		return service{}, missingError{"SERVICE_HOST", "the host of the service, or hosts separated by commas"}
	}
	port, _ := variable("SERVICE_PORT")
	if port == "" {
		return service{}, missingError{"SERVICE_PORT", "the port of the service"}
	}
	hosts := strings.Split(list, ",")
	for i, host := range hosts {
		hosts[i] = strings.TrimSpace(host)
	}
	if slices.Contains(hosts, "") {
		return service{}, settingError{"SERVICE_HOST", "a host, or hosts separated by commas", list}
	}
	number, err := parsePort("SERVICE_PORT", port)
	return service{hosts, number}, err
}

func parsePort(name, value string) (uint16, error) {
	port, err := strconv.ParseUint(value, 10, 16)
	if err != nil || port == 0 {
		return 0, settingError{name, "a whole number from 1 to 65535", value}
	}
	return uint16(port), nil
}
