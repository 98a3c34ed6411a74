package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// idleConnections is the maximum number of idle connections to one backend.
	idleConnections = 256
	// idleTime is the time after which an idle connection is closed.
	idleTime = 90 * time.Second
	// connectTime is the time limit for connecting.
	connectTime = time.Second
	// copyBytes is the size of the buffers that answers pass through.
	copyBytes = 32 * 1024
)

// Refusals of the balancer only.
var (
	errNoPath    = refusal{http.StatusBadRequest, "the target is not a path"}
	errNoBackend = refusal{http.StatusBadGateway, "no backend answers"}
	errBrokeOff  = refusal{http.StatusBadGateway, "the backend broke off"}
	errUnhealthy = refusal{http.StatusServiceUnavailable, "no backend is healthy"}
)

// balancer forwards each request to the next backend in turn.
type balancer struct {
	tally
	bytesReceived, bytesSent atomic.Uint64
	backends                 backends
	client                   *http.Transport
	buffers                  sync.Pool
}

// stats is the answer to GET /stats. Bytes count bodies only.
type stats struct {
	Requests      uint64                  `json:"requests"`
	Current       uint64                  `json:"current"`
	Failed        uint64                  `json:"failed"`
	BytesReceived uint64                  `json:"bytesReceived"`
	BytesSent     uint64                  `json:"bytesSent"`
	Backends      map[string]backendStats `json:"backends"`
}

func newBalancer() *balancer {
	return &balancer{
		client: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: connectTime}).DialContext,
			MaxIdleConnsPerHost: idleConnections,
			IdleConnTimeout:     idleTime,
			// Pass answers on unchanged.
			DisableCompression: true,
		},
		buffers: sync.Pool{New: func() any { return new([copyBytes]byte) }},
	}
}

// ServeHTTP answers the balancer's own paths and forwards all other requests.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.EscapedPath()
	switch {
	case r.Method == http.MethodGet && path == "/healthz":
		if b.backends.rotation().isHealthy() {
			writeOK(w)
		} else {
			refuse(w, errUnhealthy)
		}
	case r.Method == http.MethodGet && path == "/stats":
		writeJSON(w, http.StatusOK, b.stats())
	default:
		b.serve(w, r)
	}
}

func (b *balancer) stats() stats {
	return stats{
		b.requests.Load(), b.current.Load(), b.failures.Load(),
		b.bytesReceived.Load(), b.bytesSent.Load(), b.backends.rotation().stats(),
	}
}

// serve forwards a request to a backend, and counts it.
func (b *balancer) serve(w http.ResponseWriter, r *http.Request) {
	b.begin()
	defer b.end()
	answer, by, err := b.forward(w, r)
	var why refusal
	switch {
	case r.Context().Err() != nil:
		// The client is gone, so there is no answer.
		if answer != nil {
			answer.Body.Close()
			by.end()
		}
		return
	case errors.As(err, &why):
		b.fail()
		refuse(w, why)
		return
	}
	defer by.end()
	defer answer.Body.Close()
	if err := b.pass(w, answer); err != nil {
		// A client that went away is not a failure.
		if errors.As(err, &why) && r.Context().Err() == nil {
			b.fail()
			by.fail()
		}
		panic(http.ErrAbortHandler)
	}
}

// forward sends the request to the first backend that it can connect to. If it returns an answer, the request is
// still under way at that backend. Every error is a refusal.
func (b *balancer) forward(w http.ResponseWriter, r *http.Request) (*http.Response, *backend, error) {
	if !strings.HasPrefix(r.URL.Path, "/") {
		return nil, nil, errNoPath
	}
	body, err := readBody(w, r)
	if err != nil {
		return nil, nil, err
	}
	b.bytesReceived.Add(uint64(len(body)))
	header := r.Header
	removeHopByHop(header)
	// The whole body is already here, so its length is known.
	header.Del("Expect")
	header.Del("Content-Length")
	if _, found := header["User-Agent"]; !found {
		// Otherwise Go's client adds its own User-Agent.
		header["User-Agent"] = []string{""}
	}

	for one := range b.backends.rotation().order(b.backends.turn()) {
		one.begin()
		answer, err := b.client.RoundTrip(outgoing(r, one, body))
		if err == nil {
			return answer, one, nil
		}
		one.end()
		if r.Context().Err() != nil {
			return nil, nil, errBrokeOff
		}
		one.fail()
		// The backend may have received the request, so it is not sent again.
		var connecting *net.OpError
		if !errors.As(err, &connecting) || connecting.Op != "dial" {
			return nil, nil, errBrokeOff
		}
	}
	return nil, nil, errNoBackend
}

// outgoing returns the request to send to a backend.
func outgoing(r *http.Request, to *backend, body []byte) *http.Request {
	target := *r.URL
	target.Scheme, target.Host, target.User = "http", to.authority, (*url.Userinfo)(nil)
	request := &http.Request{
		Method: r.Method,
		URL:    &target,
		Host:   r.Host,
		Header: r.Header,
		Body:   http.NoBody,
	}
	if len(body) > 0 {
		request.Body = io.NopCloser(bytes.NewReader(body))
		request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		request.ContentLength = int64(len(body))
	}
	return request.WithContext(r.Context())
}

// pass sends the backend's answer to the client. The error is a refusal if the backend broke off. Any other error means
// that the client is gone.
func (b *balancer) pass(w http.ResponseWriter, answer *http.Response) error {
	removeHopByHop(answer.Header)
	header := w.Header()
	for name, values := range answer.Header {
		header[name] = values
	}
	if _, found := header["Content-Type"]; !found {
		// Otherwise Go's server guesses the type.
		header["Content-Type"] = nil
	}
	w.WriteHeader(answer.StatusCode)
	// If the answer's length is unknown, pass on each part as it arrives.
	flush := func() error { return nil }
	if answer.ContentLength < 0 {
		flush = http.NewResponseController(w).Flush
	}
	if err := flush(); err != nil {
		return err
	}

	buffer := b.buffers.Get().(*[copyBytes]byte)
	defer b.buffers.Put(buffer)
	for {
		n, err := answer.Body.Read(buffer[:])
		b.bytesSent.Add(uint64(n))
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return err
			}
		}
		switch err {
		case nil:
			if err := flush(); err != nil {
				return err
			}
		case io.EOF:
			return nil
		default:
			return errBrokeOff
		}
	}
}

// drain reads the rest of a body, because the connection can only then be reused.
func drain(body io.ReadCloser) {
	_, _ = io.Copy(io.Discard, body)
	body.Close()
}
