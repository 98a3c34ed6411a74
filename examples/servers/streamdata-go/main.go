// Candidate servers in Go: a service that stores the readings of devices, and a balancer in front of it.
//
// examples/servers/README.md lists their answers, and the differences from the Rust servers.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// grace is the time limit for requests in flight after SIGTERM.
const grace = time.Second

const usage = `Stores the readings of devices, or balances the load over services that store them.

Usage: streamdata-go ROLE

Roles:
  serve    Stores the last readings of each device: POST /streamdata, GET /streamdata/{deviceId}, GET /healthz
  balance  Forwards to the service's addresses in turn; GET /stats and GET /healthz are its own

Options:
  -h, --help  Print help

Environment:
  PORT            TCP port to listen on (default 8080)
  LISTEN_ADDRESS  IP address to listen on (default 0.0.0.0)

Environment of balance:
  SERVICE_HOST    host of the service, resolved every second: each address is a backend; several
                  hosts separated by commas
  SERVICE_PORT    TCP port of the service
`

func main() {
	log.SetFlags(log.LstdFlags | log.LUTC)
	role, help := arguments(os.Args[1:])
	switch {
	case help:
		fmt.Print(usage)
	case role == "":
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	default:
		if err := start(role); err != nil {
			log.Fatal(err)
		}
	}
}

// arguments returns the role and whether the user asks for help. A missing or wrong role is empty.
func arguments(given []string) (role string, help bool) {
	for _, argument := range given {
		switch {
		case argument == "-h" || argument == "--help":
			return "", true
		case role == "" && (argument == "serve" || argument == "balance"):
			role = argument
		default:
			return "", false
		}
	}
	return role, false
}

func start(role string) error {
	address, err := listenAddress(os.LookupEnv)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if role == "serve" {
		return run(ctx, address, newDevices(maximumDevices))
	}
	service, err := serviceFrom(os.LookupEnv)
	if err != nil {
		return err
	}
	balancer := newBalancer()
	go watch(service, balancer)
	return run(ctx, address, balancer)
}

// run serves until the context ends, and then lets the requests in flight end.
func run(ctx context.Context, address string, handler http.Handler) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		var cause *net.OpError
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	log.Printf("listening on %s", address)
	server := &http.Server{Handler: handler, DisableGeneralOptionsHandler: true}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("the server stopped: %w", err)
	case <-ctx.Done():
	}
	log.Print("stopping: finishing the requests in flight")
	limit, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		log.Printf("requests still in flight after %v were cut", grace)
	}
	return nil
}
