// Program k6 is Grafana k6 with one output more: `--out cycles=…` counts the runs of a script, the cycles,
// within a window, and prints what came of them as one line of JSON.
//
// k6's own summary would not do. It keeps every value in memory, it knows neither when the load began nor
// which cycles failed, and it has one set of figures for all of the load, the warm-up included.
package main

import (
	"errors"
	"net/http"

	"go.k6.io/k6/cmd"
	"go.k6.io/k6/output"
)

// errNetwork is why a script's `import 'https://…'` fails: what comes from there may be another text each time, and
// is no part of what identifies the run.
var errNetwork = errors.New("a script can't import from the network: write all of it into scenario.script")

// refusing is in the place of the HTTP client by which k6 loads modules (fetch of internal/loader/loader.go), and
// would report its use. The requests of scripts have clients of their own.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNetwork }

func main() {
	http.DefaultClient = &http.Client{Transport: refusing{}}
	output.RegisterExtension("cycles", newOutput)
	cmd.Execute()
}
