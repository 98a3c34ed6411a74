package main

import (
	"bytes"
	"io"
	"os"
	"sync/atomic"
)

// endless counts the answers without a length in their headers. Fortio reads only the beginning of such an answer,
// counts a success and closes the connection. It reports this only in its log (readResponse in fhttp/http_client.go),
// so endless is the writer of the log. Of the other lines it writes only critical ones to standard error.
type endless struct {
	answers atomic.Uint64
}

var _ io.Writer = (*endless)(nil)

func (e *endless) Write(line []byte) (int, error) {
	switch {
	case bytes.Contains(line, []byte(`"Content-length missing"`)):
		e.answers.Add(1)
	case bytes.Contains(line, []byte(`"level":"warn"`)), bytes.Contains(line, []byte(`"level":"err"`)):
	default:
		return os.Stderr.Write(line)
	}
	return len(line), nil
}
