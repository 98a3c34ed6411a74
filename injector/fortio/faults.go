package main

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"
)

// mostIdle is the longest time between two requests of a connection in which no server closes the connection because it
// is idle. Servers have limits of 2 s and more.
const mostIdle = time.Second

// faults counts the requests that Fortio counts as successes although it did not read a whole answer.
type faults struct {
	// endless is the number of answers without a length in their headers. Fortio reads only the beginning and closes the
	// connection.
	endless atomic.Uint64
	// cut is the number of answers that are longer than Fortio's buffer. Fortio takes the rest for the next answer.
	cut atomic.Uint64
	// closed is the number of repeated requests whose connection the server closed. The others were late.
	closed atomic.Uint64
}

var (
	_ io.Writer = (*recorder)(nil)
	// thread is Fortio's number of the connection in a line of its log.
	thread = regexp.MustCompile(`"thread":(\d+)`)
)

// Write takes a line of Fortio's log, because Fortio reports these faults nowhere else (StreamFetch and readResponse in
// fhttp/http_client.go). It writes only critical lines to standard error. The goroutine of a connection writes its
// lines itself, before it reports the request.
func (r *recorder) Write(line []byte) (int, error) {
	has := func(words string) bool { return bytes.Contains(line, []byte(words)) }
	switch {
	case has(`"Content-length missing"`):
		r.faults.endless.Add(1)
	case has(`"Buffer is too small for headers + data`), has(`"Buffer too small`), has(`"More data is available`):
		r.faults.cut.Add(1)
	case has(`"Closing dead socket`):
		r.repeat(line)
	case has(`"level":"crit"`), has(`"level":"fatal"`):
		return os.Stderr.Write(line)
	}
	return len(line), nil
}

func (r *recorder) repeat(line []byte) {
	found := thread.FindSubmatch(line)
	if found == nil {
		return
	}
	if id, err := strconv.Atoi(string(found[1])); err == nil && id < len(r.connections) {
		r.connections[id].isRepeated = true
	}
}
