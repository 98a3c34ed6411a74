package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"strconv"
)

// maximumBodyBytes is the largest body of a request.
const maximumBodyBytes = 64 * 1024

// refusal is the reason why a request is not served. The text goes to the client.
type refusal struct {
	status int
	text   string
}

func (r refusal) Error() string { return r.text }

// Refusals of both roles. Each role has further refusals.
var (
	errBody     = refusal{http.StatusBadRequest, "the body cannot be read"}
	errTooLarge = refusal{
		http.StatusRequestEntityTooLarge,
		"the body is larger than " + strconv.Itoa(maximumBodyBytes) + " bytes",
	}
)

// refuse answers with the refusal's status and text.
func refuse(w http.ResponseWriter, why refusal) {
	if why.status == http.StatusRequestEntityTooLarge {
		// The rest of the body may not have been read.
		w.Header().Set("Connection", "close")
	}
	writeJSON(w, why.status, struct {
		Error string `json:"error"`
	}{why.text})
}

// refuseMethod answers 405 with the methods of the path.
func refuseMethod(w http.ResponseWriter, methods string) {
	w.Header().Set("Allow", methods)
	refuse(w, refusal{http.StatusMethodNotAllowed, "only " + methods + " is served here"})
}

// writeJSON answers in JSON.
func writeJSON(w http.ResponseWriter, status int, value any) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		log.Printf("cannot write JSON: %v", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	write(w, status, "application/json", bytes.TrimSuffix(text.Bytes(), []byte{'\n'}))
}

// write answers with a whole body. A write error is ignored, because the client is then gone.
func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// writeOK answers 200 with the body ok.
func writeOK(w http.ResponseWriter) {
	write(w, http.StatusOK, "text/plain; charset=utf-8", []byte("ok"))
}

// readBody reads the body of a request, up to maximumBodyBytes.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > maximumBodyBytes {
		return nil, errTooLarge
	}
	var body []byte
	var err error
	if r.ContentLength >= 0 {
		body = make([]byte, r.ContentLength)
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maximumBodyBytes))
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, errTooLarge
	case err != nil:
		return nil, errBody
	}
	return body, nil
}
