// SPDX-License-Identifier: AGPL-3.0-only

// Program k6 is Grafana k6 with one more output: `--out cycles=…` counts the runs of a script, the cycles, within a
// window. It prints the result as one line of JSON.
//
// k6's own summary is not sufficient. It keeps every value in memory. It knows neither the start of the load nor the
// failed cycles. It has one set of figures for the whole load, including the warm-up.
package main

import (
	"errors"
	"net/http"

	"go.k6.io/k6/cmd"
	"go.k6.io/k6/output"
)

// errNetwork is the error of `import 'https://…'` in a script. The text at a URL can change, and the run's ID does not
// cover it.
var errNetwork = errors.New("a script can't import from the network: write all of it into scenario.script")

// refusing replaces the transport of http.DefaultClient, with which k6 loads modules (fetch in
// internal/loader/loader.go) and would report its use to Grafana. Scripts send their requests with other clients.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNetwork }

func main() {
	http.DefaultClient = &http.Client{Transport: refusing{}}
	output.RegisterExtension("cycles", newOutput)
	cmd.Execute()
}
