// kine with its SQLite driver alone, on a Unix socket. The standard program also links etcd's server, NATS and the
// drivers of other databases, which would double its build time.
package main

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"log"
	"math"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/k3s-io/kine/pkg/drivers"
	"github.com/k3s-io/kine/pkg/drivers/generic"
	_ "github.com/k3s-io/kine/pkg/drivers/sqlite"
	"github.com/k3s-io/kine/pkg/server"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// The values of the standard program: pkg/app and pkg/endpoint of kine, which takes its limits from etcd's embed/config.go.
const (
	emulatedEtcdVersion    = "3.6.11"
	progressInterval       = 5 * time.Second
	mostRequestBytes       = 2 << 20
	keepAliveMinTime       = 5 * time.Second
	keepAliveTime          = 2 * time.Hour
	keepAliveTimeout       = 20 * time.Second
	mostIdleConnections    = 20
	longestIdle            = 2 * time.Minute
	compactTimeout         = 5 * time.Second
	compactedRevisionsKept = 1000
	compactBatch           = 1000
	pollBatch              = 500
	shutdownPatience       = 2 * time.Second
)

func main() {
	address := flag.String("listen-address", "", "unix://PATH of the socket")
	endpoint := flag.String("endpoint", "", "sqlite://FILE of the database")
	flag.Parse()
	if err := run(*address, *endpoint); err != nil {
		log.Fatal(err)
	}
}

func run(address, endpoint string) error {
	socket, isUnix := strings.CutPrefix(address, "unix://")
	if !isUnix || socket == "" {
		return errors.New("--listen-address needs the form unix://PATH")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// The backend ends after the last request.
	background, end := context.WithCancel(context.Background())
	defer end()
	_, backend, err := drivers.New(background, &sync.WaitGroup{}, &drivers.Config{
		Endpoint:             endpoint,
		ConnectionPoolConfig: generic.ConnectionPoolConfig{MaxIdle: mostIdleConnections, MaxIdleTime: longestIdle},
		CompactTimeout:       compactTimeout,
		CompactMinRetain:     compactedRevisionsKept,
		CompactBatchSize:     compactBatch,
		PollBatchSize:        pollBatch,
	})
	if err != nil {
		return err
	}
	if err := backend.Start(background); err != nil {
		return err
	}
	requests := grpc.NewServer(
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepAliveMinTime}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepAliveTime, Timeout: keepAliveTimeout}),
		grpc.MaxConcurrentStreams(math.MaxUint32),
		grpc.MaxRecvMsgSize(mostRequestBytes),
		grpc.MaxSendMsgSize(math.MaxInt32),
	)
	server.New(backend, "unix", progressInterval, emulatedEtcdVersion).Register(requests)
	// A killed process leaves its socket behind.
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	// A user who can write to it can write the state of the cluster.
	if err := os.Chmod(socket, 0o600); err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		// Watches do not end by themselves.
		time.AfterFunc(shutdownPatience, requests.Stop)
		requests.GracefulStop()
	}()
	log.Printf("kine available at %s", address)
	return requests.Serve(listener)
}
