package main

import (
	"errors"
	"log"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// maximumDevices is the maximum number of devices with a stored payload.
const maximumDevices = 10_000

// Refusals of the service only.
var (
	errNotFound = refusal{http.StatusNotFound, "there is nothing at this path"}
	errNoDevice = refusal{http.StatusNotFound, "nothing is kept of this device"}
	errFull     = refusal{http.StatusInsufficientStorage, "no more devices are kept"}
)

// devices is the service: the last payload of each device.
type devices struct {
	maximum  int
	lock     sync.Mutex
	payloads map[string]*payload
}

func newDevices(maximum int) *devices {
	return &devices{maximum: maximum, payloads: make(map[string]*payload)}
}

// ServeHTTP answers all requests to the service.
func (d *devices) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The path without decoding: %2F is not a slash.
	path := r.URL.EscapedPath()
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	deviceID, isDevice := strings.CutPrefix(path, "/streamdata/")
	isDevice = isDevice && deviceID != "" && !strings.Contains(deviceID, "/")
	switch {
	case path == "/streamdata" && r.Method == http.MethodPost:
		d.answerKeep(w, r)
	case path == "/streamdata":
		refuseMethod(w, "POST")
	case path != "/healthz" && !isDevice:
		refuse(w, errNotFound)
	case !read:
		refuseMethod(w, "GET, HEAD")
	case isDevice:
		d.answerKept(w, deviceID)
	default:
		writeOK(w)
	}
}

func (d *devices) answerKeep(w http.ResponseWriter, r *http.Request) {
	receipt, err := d.receive(w, r)
	if err == nil {
		writeJSON(w, http.StatusOK, receipt)
		return
	}
	var why refusal
	if !errors.As(err, &why) {
		log.Print(err)
		why = errBody
	}
	refuse(w, why)
}

func (d *devices) receive(w http.ResponseWriter, r *http.Request) (receipt, error) {
	body, err := readBody(w, r)
	if err != nil {
		return receipt{}, err
	}
	read, err := readPayload(body)
	if err != nil {
		return receipt{}, err
	}
	return read.receipt(), d.keep(read)
}

func (d *devices) answerKept(w http.ResponseWriter, escaped string) {
	deviceID, err := url.PathUnescape(escaped)
	kept := d.kept(deviceID)
	if err != nil || kept == nil {
		refuse(w, errNoDevice)
		return
	}
	writeJSON(w, http.StatusOK, kept)
}

// keep replaces the device's last payload.
func (d *devices) keep(one *payload) error {
	d.lock.Lock()
	defer d.lock.Unlock()
	if _, known := d.payloads[*one.DeviceID]; !known && len(d.payloads) >= d.maximum {
		return errFull
	}
	d.payloads[*one.DeviceID] = one
	return nil
}

// kept returns the device's last payload, or nil if the service has none.
func (d *devices) kept(deviceID string) *payload {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.payloads[deviceID]
}
