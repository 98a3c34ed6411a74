package main

import (
	"encoding/json"
	"net/http"
	"unicode/utf8"
)

// payload holds the readings of one device. Every field is required: a nil pointer marks a missing field. Other fields
// are ignored.
type payload struct {
	Name      *string   `json:"name"`
	DeviceID  *string   `json:"deviceId"`
	PatientID *string   `json:"patientId"`
	Data      []reading `json:"data"`
}

// reading holds the values of one time.
type reading struct {
	HR     *int64  `json:"hr"`
	BPS    *int64  `json:"bps"`
	BPD    *int64  `json:"bpd"`
	SpO2   *int64  `json:"spo2"`
	Custom *custom `json:"custom"`
	Date   *string `json:"date"`
}

// custom holds the values that only some devices measure.
type custom struct {
	TP  *float64 `json:"tp"`
	RR  *int64   `json:"rr"`
	Etc *string  `json:"etc"`
}

// receipt is the answer to a payload.
type receipt struct {
	Status   string `json:"status"`
	DeviceID string `json:"deviceId"`
	Readings int    `json:"readings"`
}

// readPayload reads JSON. The device ID must not be empty, because a path must be able to contain it.
func readPayload(text []byte) (*payload, error) {
	// encoding/json would replace invalid UTF-8 by U+FFFD.
	if !utf8.Valid(text) {
		return nil, noPayload("it is not UTF-8")
	}
	var read payload
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, noPayload(err.Error())
	}
	if field := read.missing(); field != "" {
		return nil, noPayload("missing field `" + field + "`")
	}
	if *read.DeviceID == "" {
		return nil, noPayload("deviceId is empty")
	}
	return &read, nil
}

func noPayload(why string) refusal {
	return refusal{http.StatusBadRequest, "not a payload: " + why}
}

// receipt returns the answer to the payload.
func (p *payload) receipt() receipt {
	return receipt{"OK", *p.DeviceID, len(p.Data)}
}

// missing returns the name of the first missing field, or an empty name if no field is missing.
func (p *payload) missing() string {
	switch {
	case p.Name == nil:
		return "name"
	case p.DeviceID == nil:
		return "deviceId"
	case p.PatientID == nil:
		return "patientId"
	case p.Data == nil:
		return "data"
	}
	for i := range p.Data {
		if field := p.Data[i].missing(); field != "" {
			return field
		}
	}
	return ""
}

func (r *reading) missing() string {
	switch {
	case r.HR == nil:
		return "hr"
	case r.BPS == nil:
		return "bps"
	case r.BPD == nil:
		return "bpd"
	case r.SpO2 == nil:
		return "spo2"
	case r.Custom == nil:
		return "custom"
	case r.Custom.TP == nil:
		return "tp"
	case r.Custom.RR == nil:
		return "rr"
	case r.Custom.Etc == nil:
		return "etc"
	case r.Date == nil:
		return "date"
	}
	return ""
}
